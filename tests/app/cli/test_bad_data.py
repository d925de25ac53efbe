"""Data and settings that ``multicause fit`` refuses."""

import json

import numpy as np
import pytest
from scipy.io import wavfile
from skimage.io import imsave

from tests.app.cli.calls import call


def bad_files(path):
    """Files that cannot be learned from."""
    (path / "empty").mkdir()
    for name, sizes in {"sizes": [(4, 5), (4, 6)], "small": [(4, 5)]}.items():
        (path / name).mkdir()
        for number, size in enumerate(sizes):
            image = np.arange(np.prod(size), dtype=np.uint8).reshape(size)
            imsave(path / name / f"{number}.png", image, check_contrast=False)
    (path / "broken.png").write_bytes(b"\x89PNG and no more")
    (path / "broken.npy").write_bytes(b"nothing")
    (path / "broken.wav").write_bytes(b"nothing")
    (path / "broken.parquet").write_bytes(b"nothing")
    (path / "blank.csv").write_text("")
    (path / "song.mp3").write_bytes(b"nothing")
    np.save(path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(path / "flat.npy", np.arange(5.0))
    np.savez(path / "two.npz", a=np.ones(3), b=np.ones(3))
    (path / "text.csv").write_text("name,colour\nx,red\ny,blue\n")
    (path / "counted.csv").write_text("0,1,2\n3,5,4\n5,6,7\n")
    (path / "flat.csv").write_text("a,b\n1,2\n")
    (path / "names.csv").write_text("a,b\n")
    (path / "gap.csv").write_text("a,b\n1,2\n3,\n")
    (path / "headless.csv").write_text("1,2\n3,4\n5,6\n")
    wavfile.write(path / "stereo.wav", 8000, np.ones((2000, 2), np.int16))
    wavfile.write(path / "short.wav", 8000, np.arange(50, dtype=np.int16))
    wavfile.write(path / "silent.wav", 8000, np.zeros(5000, np.int16))
    (path / "file").write_text("x")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere.csv", "There is no 'nowhere.csv'."),
        ("empty", "holds no images or sounds, but 0 other files"),
        ("sizes", "'sizes/0.png' has 4×5 pixels and 'sizes/1.png' has 4×6. Resize them, or learn from patches"),
        ("small", "gives one row, and at least two are needed to learn from. A whole image is one row. Cut it into"),
        ("small/0.png --components 2", "Cut it into patches, such as --patches 8x8, or name more images"),
        ("flat.csv", "flat.csv gives one row, and at least two are needed to learn from. Name a table with more rows"),
        ("small --patches 9x9", "'small/0.png': A patch of 9×9 does not fit into the image of 4×5"),
        ("small --patches 9", "--patches must be a height and a width such as 10x10; got '9'"),
        ("broken.png --patches 2x2", "'broken.png' cannot be read as an image"),
        ("broken.npy", "'broken.npy' cannot be read as an array of numbers: it does not begin as a npy or npz file"),
        ("pickle.npy", "'pickle.npy' cannot be read as an array of numbers"),
        ("broken.wav", "'broken.wav' cannot be read as a wav file"),
        ("broken.parquet", "'broken.parquet' cannot be read as a parquet file"),
        ("blank.csv", "'blank.csv' is empty: it has no rows"),
        ("song.mp3", "has an unknown format. Known endings: .npy"),
        ("flat.npy", "must have shape (rows, columns) or (rows, height, width); got (5,)"),
        ("two.npz", "holds 2 arrays (a, b); expected one. Choose one with --array NAME"),
        ("two.npz --array c", "there is no 'c'"),
        ("text.csv", "has no column of numbers to learn from (texts: 'name', 'colour')"),
        ("gap.csv --model ica", "NaN: row 1, column 1. IndependentComponents whitens data, which takes complete rows"),
        ("gap.csv --drop z", "has no column 'z' to drop; it has 'a', 'b'"),
        ("counted.csv", "('0', '1', '2') may hold names of columns or data. Say which with --header or --no-header"),
        (
            "stereo.wav",
            "has 2 channels; expected one. Average them, for example",
        ),
        ("stereo.wav --channel 2", "there is no channel 2"),
        ("short.wav", "has 50 samples, too few for one piece of 1000"),
        ("silent.wav", "is silent"),
        ("short.wav --sound noise", "Unknown sound 'noise'. Known: spectrogram, waveform"),
        ("headless.csv --no-header --model magic", "Unknown model 'magic'. Known: auto, maximal, linear"),
        ("headless.csv --no-header --model kmeans --noise poisson", "The model 'kmeans' has no --noise; its settings"),
        ("headless.csv --no-header --set tol", "--set needs a name and a value"),
        (
            "headless.csv --no-header --set posterior__depth=2",
            "posterior=None stands for Preselected(keep=None) or Exa",
        ),
        ("headless.csv --no-header --memory much", "A memory size must be a positive number"),
        ("headless.csv --no-header --device abacus", "Unknown device 'abacus'. Known: auto, cpu, gpu"),
        ("headless.csv --no-header --dtype int", "dtype must be float32 or float64; got 'int'"),
        ("headless.csv --no-header --image-shape 2x2", "Images of 2×2 have 4 pixels, but 'headless.csv' has 2 columns"),
        ("names.csv", "'names.csv' is empty: 0 rows, 2 columns."),
        ("headless.csv --no-header --components 0", "--components must be a whole number of at least 1"),
        ("headless.csv --no-header --magic 3", "No such option: --magic"),
        (
            "headless.csv --no-header --model helmholtz --components 2",
            "Binary data are needed, with values 0 and 1",
        ),
    ],
)
def test_bad_data_give_one_line_exit_code_2_and_nothing_written(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    run = call("fit", *words.split(), "--out", "new/run", "--json")
    assert run.exit_code == 2
    assert run.stderr.startswith("Error: ")
    assert run.stderr.count("\n") == 1
    # Paths of data are made whole on their way; what the user typed is enough here.
    assert message in run.stderr.replace(f"{tmp_path}/", "")
    assert json.loads(run.stdout)["exit_code"] == 2
    assert sorted(tmp_path.rglob("*")) == before
