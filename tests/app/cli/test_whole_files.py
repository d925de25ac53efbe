"""Images in, images out; sound in, sound out."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy.io import wavfile
from scipy.signal import istft, stft

import multicause
from multicause.app.cli.results import sortable
from multicause.datasets.overlap import patches_at
from multicause.datasets.reading import Reading, read_data
from multicause.datasets.sound_overlap import reconstruct_sound
from tests.app.cli.calls import call, plain, result_of

RATE = 8000


def decibels(clean, found):
    """Signal-to-noise ratio."""
    return 10 * np.log10((clean**2).sum() / ((clean - found) ** 2).sum())


@pytest.fixture(scope="module")
def tones():
    """Five seconds of notes with overtones, of which each lasts a quarter of a second, and some are pauses."""
    random = np.random.RandomState(0)
    time = np.arange(RATE // 4) / RATE
    envelope = np.minimum(1, 30 * np.minimum(time, time[::-1]))
    notes = [220, 330, 440, 0]
    parts = [
        envelope * sum(np.sin(2 * np.pi * k * note * time) / k for k in (1, 2, 3)) for note in random.choice(notes, 20)
    ]
    return 0.2 * np.concatenate(parts)


@pytest.mark.parametrize("sound", ["spectrogram", "waveform"])
@pytest.mark.parametrize("rate", [RATE, 11025])
def test_a_model_that_changes_nothing_gives_the_recording_back(tones, sound, rate):
    same = SimpleNamespace(reconstruct=lambda rows: rows)
    reading = Reading(sound=sound, frames=4, length=40, level=10.0)
    wave = tones[:9000]
    found = reconstruct_sound(same, wave, rate, reading)
    assert found.shape == wave.shape
    if sound == "spectrogram" or rate == RATE:
        np.testing.assert_allclose(found, wave, atol=1e-9)
    else:
        assert decibels(wave, found) > 20  # resampled twice
    with pytest.raises(ValueError, match="The recording has 30 samples at 8000 Hz; at least"):
        reconstruct_sound(same, wave[:30], RATE, reading)


def test_amplitudes_are_multiplied_by_the_ratio_of_powers(tones):
    """2 of 10 units of a range of 42.8 dB are missing, but for twice the standard deviation of the noise."""
    for variance in (0.0, 0.25, 1.0):
        lower = SimpleNamespace(reconstruct=lambda rows: rows - 2, noise_variance_=variance)
        found = reconstruct_sound(lower, tones[:9000], RATE, Reading(frames=3, level=1.0))
        missing = 4.28 * (2 - 2 * np.sqrt(variance))
        np.testing.assert_allclose(found, 10 ** (-missing / 10) * tones[:9000], atol=1e-9)


def test_a_model_of_clean_sound_removes_noise(tones, tmp_path):
    random = np.random.RandomState(1)
    noisy = tones + random.normal(0, 0.25 * tones.std(), len(tones))
    wavfile.write(tmp_path / "clean.wav", RATE, tones.astype(np.float32))
    # Another type with another full scale, and two channels.
    stereo = np.stack([noisy, noisy], axis=1)
    wavfile.write(tmp_path / "noisy.wav", RATE, np.rint(2**15 * stereo).astype(np.int16))
    # Each piece is a note or a pause, or between two of them.
    options = ["--frames", 3, "--model", "kmeans", "--components", 8, "--no-report"]
    result_of("fit", tmp_path / "clean.wav", *options, "--out", tmp_path / "run")
    result_of("reconstruct", tmp_path / "run", tmp_path / "noisy.wav", "--out", tmp_path / "found.wav")
    rate, found = wavfile.read(tmp_path / "found.wav")
    assert (rate, found.shape, found.dtype) == (RATE, stereo.shape, np.int16)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    assert decibels(tones, found[:, 0] / 2**15) > decibels(tones, noisy) + 3
    words = ["reconstruct", tmp_path / "run", tmp_path / "noisy.wav", "--out", tmp_path / "alone.wav", "--noise-level"]
    assert result_of(*words, "none")["noise_removed"] is False
    assert decibels(tones, wavfile.read(tmp_path / "alone.wav")[1][:, 0] / 2**15) > decibels(tones, noisy)
    assert "--noise-level must be 'auto' (noise is estimated" in call(*words, "0.1", "--force").stderr
    run = call("reconstruct", tmp_path / "run", tmp_path / "noisy.wav", "--out", tmp_path / "found.mp3")
    assert "must end in one of .wav" in run.stderr
    words = ["reconstruct", tmp_path / "run", tmp_path / "noisy.wav", tmp_path / "clean.wav", "--out"]
    result_of(*words, tmp_path / "both", "--channel", 0)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["00000-noisy.wav", "00001-clean.wav"]
    assert wavfile.read(tmp_path / "both" / "00000-noisy.wav")[1].ndim == 1
    # A table of pieces is still to be had.
    found = result_of("reconstruct", tmp_path / "run", tmp_path / "clean.wav", "--out", tmp_path / "rows.npy")
    assert found["shape"][1] == 150


@pytest.mark.parametrize("knows", [0.0, 0.5, 1.0])
def test_noise_is_removed_also_by_a_model_that_knows_little_of_the_sound(tones, knows):
    """The model knows the clean levels, a part of each, or that there is silence; in the rows are noisy ones."""
    random = np.random.RandomState(1)
    noisy = tones + random.normal(0, 0.3 * tones.std(), len(tones))
    reading = Reading(frames=3, level=30.0)
    clean_levels = []
    recorder = SimpleNamespace(reconstruct=lambda rows: clean_levels.append(rows) or rows)
    reconstruct_sound(recorder, tones, RATE, reading)
    parts = iter(clean_levels)
    model = SimpleNamespace(reconstruct=lambda rows: knows * next(parts))
    found = reconstruct_sound(model, noisy, RATE, reading, remove_noise=True)
    # A filter that knows the powers of sound and noise, at each frequency and time, is the best that can be reached.
    (_, _, sound), (_, _, noise), (_, _, both) = (stft(x, nperseg=200) for x in (tones, noisy - tones, noisy))
    best = istft(np.abs(sound) ** 2 / (np.abs(sound) ** 2 + np.abs(noise) ** 2) * both, nperseg=200)[1][: len(tones)]
    assert decibels(tones, noisy) + 3 < decibels(tones, found) < decibels(tones, best)


def test_a_clean_recording_stays_as_it_is_when_noise_is_removed(tones):
    silence = SimpleNamespace(reconstruct=np.zeros_like)
    found = reconstruct_sound(silence, tones, RATE, Reading(frames=3, level=30.0), remove_noise=True)
    assert decibels(tones, found) > 30


def test_files_of_all_types_are_equally_loud(tones, tmp_path):
    rows = []
    for name, samples in {
        "float": tones.astype(np.float32),
        "short": np.rint(2**15 * tones).astype(np.int16),
        "long": np.rint(2**31 * tones).astype(np.int32),
    }.items():
        wavfile.write(tmp_path / f"{name}.wav", RATE, samples)
        rows.append(read_data(tmp_path / f"{name}.wav", Reading(level=30.0)).rows)
    np.testing.assert_allclose(rows[1], rows[0], atol=0.2)
    np.testing.assert_allclose(rows[2], rows[0], atol=1e-3)


@pytest.fixture(scope="module")
def photo_run(tmp_path_factory):
    imsave = pytest.importorskip("skimage.io", reason="scikit-image is not installed").imsave
    path = tmp_path_factory.mktemp("maps")
    image = np.random.RandomState(0).uniform(size=(14, 20)).cumsum(axis=0) * 15
    for name in ("a", "b"):
        imsave(path / f"{name}.png", image.astype(np.uint8), check_contrast=False)
    options = ["--patches", "4x4", "--count", 80, "--model", "pca", "--center", "--components", 3, "--no-report"]
    result_of("fit", path / "a.png", *options, "--out", path / "run")
    return path, image.astype(np.uint8).astype(float)


def test_causes_of_an_image_keep_their_places(photo_run, tmp_path):
    path, image = photo_run
    found = result_of("transform", path / "run", path / "a.png", path / "b.png", "--out", tmp_path / "causes.csv")
    table = pandas.read_csv(tmp_path / "causes.csv")
    assert list(table.columns[:3]) == ["file", "row", "column"]
    # 14 pixels hold patches at 0, 4, 8, and at 10, which reaches to the border.
    assert found["shape"] == [40, 3]
    assert sorted(table["row"].unique()) == [0, 4, 8, 10]
    assert sorted(table["column"].unique()) == [0, 4, 8, 12, 16]
    scaled = 10 * (image - image.min()) / np.ptp(image)
    model = multicause.load(path / "run" / "model.multicause")
    for _, line in table.iloc[[0, 7, 19, 33]].iterrows():
        patch = scaled[line["row"] : line["row"] + 4, line["column"] : line["column"] + 4].reshape(1, -1)
        np.testing.assert_allclose(line.iloc[3:].astype(float), model.transform(patch - patch.mean())[0], rtol=1e-6)


def test_maps_of_causes(photo_run, tmp_path):
    path, _ = photo_run
    found = result_of("transform", path / "run", path / "a.png", "--step", 1, "--out", tmp_path / "maps.npy")
    assert found["shape"] == [11, 17, 3]
    maps = np.load(tmp_path / "maps.npy")
    assert maps.shape == (11, 17, 3)
    result_of("transform", path / "run", path / "a.png", "--step", 1, "--out", tmp_path / "maps")
    from skimage.io import imread

    files = sorted((tmp_path / "maps").iterdir())
    assert len(files) == 3
    np.testing.assert_array_equal(
        imread(files[1]), np.rint(255 * (maps[:, :, 1] - maps.min()) / np.ptp(maps)).astype(np.uint8)
    )
    run = call("transform", path / "run", path / "a.png", path / "b.png", "--out", tmp_path / "two.npy")
    assert "holds the maps of one image, and there are 2" in run.stderr


def test_names_of_maps_are_sorted_by_their_numbers():
    names = sortable([f"kmeans{number}" for number in range(12)])
    assert names == sorted(names)
    assert (names[2], names[11]) == ("kmeans02", "kmeans11")
    assert sortable(["pca0", "pca1"]) == ["pca0", "pca1"]


def test_patches_on_a_grid():
    image = np.arange(30.0).reshape(5, 6)
    patches, tops, lefts = patches_at(image, (2, 3), scale=29.0, step=2)
    assert (tops.tolist(), lefts.tolist()) == ([0, 2, 3], [0, 2, 3])
    np.testing.assert_allclose(patches[2, 1], image[3:5, 2:5])
    with pytest.raises(ValueError, match="step must be at least 1"):
        patches_at(image, (2, 3), step=0)


def test_reports_have_sounds_and_images_before_and_after(tones, photo_run, tmp_path):
    wavfile.write(tmp_path / "tones.wav", RATE, tones.astype(np.float32))
    options = ["--model", "pca", "--components", 3]
    result_of("fit", tmp_path / "tones.wav", "--frames", 3, *options, "--out", tmp_path / "sound")
    page = (tmp_path / "sound" / "report.html").read_text()
    assert page.count("<audio ") == 2
    assert "media-src data:" in page
    assert "frequency from 100 to 4000 Hz" in page
    assert len(page) < 5e6
    path, _ = photo_run
    result_of("report", path / "run", "--out", tmp_path / "photo.html")
    page = (tmp_path / "photo.html").read_text()
    assert page.count('<img src="data:image/jpeg') == 2
    assert "PSNR" in page


def test_runs_are_compared(photo_run, tmp_path):
    path, _ = photo_run
    options = ["--patches", "4x4", "--count", 80, "--model", "ica", "--components", 3, "--no-report"]
    result_of("fit", path / "a.png", *options, "--out", tmp_path / "ica")
    words = ["report", path / "run", tmp_path / "ica", "--out", tmp_path / "both.html"]
    found = result_of(*words)
    assert found["runs"] == ["run", "ica"]
    assert [facts["model"] for facts in found["facts"]] == ["PrincipalComponents", "IndependentComponents"]
    assert 0 < found["similarity"][0] <= 1
    assert "already exists" in call(*words).stderr
    again = result_of(*words, "--data", path / "b.png", "--force")  # the same picture under another name
    key = "variance explained, R²"
    assert [facts[key] for facts in again["facts"]] == [facts[key] for facts in found["facts"]]
    assert again["facts"][0]["data"] == "b.png"


def test_runs_of_different_data_are_compared_on_data_of_any_format(tmp_path):
    random = np.random.RandomState(0)
    for name, n in {"few": 20, "many": 30}.items():
        pandas.DataFrame(random.normal(size=(n, 3)), columns=list("abc")).to_csv(tmp_path / f"{name}.csv", index=False)
        options = ["--model", "pca", "--components", 1, "--no-report"]
        result_of("fit", tmp_path / f"{name}.csv", *options, "--out", tmp_path / name)
    table = pandas.DataFrame(random.normal(size=(12, 3)), columns=list("abc"))
    table.to_csv(tmp_path / "other.csv", index=False, sep=";", decimal=",")
    words = ["report", tmp_path / "few", tmp_path / "many", "--out", tmp_path / "page.html", "--force"]
    run = call(*words)
    assert "The runs were fitted to different data, so that R² and scores are not comparable" in plain(run.output)
    assert "nor is R² here" in (tmp_path / "page.html").read_text()
    found = result_of(*words, "--data", tmp_path / "other.csv", "--sep", ";", "--decimal", ",")
    assert [facts["rows"][:20] for facts in found["facts"]] == ["12 rows, 3 columns a"] * 2
    assert "not comparable; R² is." in (tmp_path / "page.html").read_text()
    run = call(*words, "--sep", ";")
    assert "Options of files, such as --sep and --array, are for other data; name them with --data." in run.stderr
