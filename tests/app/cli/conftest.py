"""Data and a run of the command line, which its tests share."""

import numpy as np
import pandas
import pytest
from scipy.io import wavfile
from skimage.io import imsave

from multicause.datasets import make_bars
from tests.app.cli.calls import call


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Data of all kinds, and a run of a mixture on small images."""
    path = tmp_path_factory.mktemp("data")
    random = np.random.RandomState(0)
    rows = make_bars(60, noise="poisson", random_state=0).data
    np.save(path / "rows.npy", rows.reshape(60, 5, 5))
    pandas.DataFrame(rows[:, :4], columns=["a", "b", "c", "<d>"]).to_csv(path / "table.csv", index=False)
    (path / "photos").mkdir()
    for name in "xy":
        image = random.uniform(size=(12, 14)).cumsum(axis=0) * 20
        imsave(path / "photos" / f"{name}.png", image.astype(np.uint8), check_contrast=False)
    wavfile.write(path / "sound.wav", 8000, random.randint(-999, 999, 3000).astype(np.int16))
    run = call("fit", path / "rows.npy", "--model", "mixture", "--components", 3, "--out", path / "run", "--seed", 1)
    assert run.exit_code == 0, run.output
    return path
