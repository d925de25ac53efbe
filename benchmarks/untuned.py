"""Defaults against settings by hand, on data that nobody picked: ``python -m benchmarks.untuned``.

Data sets come with scikit-learn and scikit-image, or lie in a folder (``--data``, with the names below). Of each, half
of at most 800 rows are learned from by LinearCauses (tables, centred) or MaximalCauses (images, spectra, counts), with
nothing but ``n_components`` given and with each of several hand settings. The table has the held-out score of the
defaults, the worst and the best of the hand settings, and how far the defaults are below the best, in percent of the
range between the worst and the best (negative: better than all of them).

``--save FILE`` keeps the rows of all data sets for ``--rows FILE`` on another machine; ``--jobs`` runs data sets side
by side, and ``--seconds`` begins no fit after that time.
"""

import argparse
import itertools
import multiprocessing
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

ROWS, COMPONENTS, PATCH = 800, 8, 8
TABLES = ("iris", "wine", "breast_cancer", "diabetes", "linnerud")
PICTURES = ("camera", "coins", "brick", "grass", "gravel", "moon", "page", "text", "clock")
# Data sets whose rows are counts.
COUNTS = ("digits", "mnist")


def patches(image: np.ndarray) -> np.ndarray:
    """Return random patches of an image, from 0 to 10."""
    image = np.asarray(image, dtype=float)
    image = image.mean(axis=2) if image.ndim == 3 else image
    places = np.lib.stride_tricks.sliding_window_view(image / image.max() * 10, (PATCH, PATCH)).reshape(-1, PATCH**2)
    return places[np.random.RandomState(0).choice(len(places), ROWS, replace=False)]


def collect(folder: Path | None) -> dict[str, np.ndarray]:
    """Return the rows of all data sets that are to be had here, and name the others."""
    import sklearn.datasets

    makers: dict[str, Callable[[], np.ndarray]] = {
        name: (lambda name=name: getattr(sklearn.datasets, f"load_{name}")().data) for name in (*TABLES, "digits")
    }
    makers |= {
        name: (lambda name=name: patches(sklearn.datasets.load_sample_image(f"{name}.jpg")))
        for name in ("china", "flower")
    }

    def bundled(name: str) -> np.ndarray:
        import skimage.data

        if name == "faces":
            return skimage.data.lfw_subset()[:100, ::3, ::3].reshape(100, -1) * 10
        return patches(getattr(skimage.data, name)())

    makers |= {name: (lambda name=name: bundled(name)) for name in (*PICTURES, "faces")}
    if folder is not None:
        makers |= {
            "mnist": lambda: _first_array(folder / "mnist" / "mnist_test.npz")[:ROWS, ::4, ::4].reshape(-1, 49) / 25.0,
            "swimmer": lambda: _first_array(folder / "swimmer" / "swimmer.npz").reshape(-1, 32, 32)[:, ::4, ::4] * 1.0,
            "dune": lambda: patches(np.load(folder / "natural_free" / "natural_free.npz")["mate_Dune"]),
            "phonemes": lambda: _spectra(folder / "phonemes" / "timit_male_phonemes_16k.npz"),
        }
    found = {}
    for name, make in makers.items():
        try:
            rows = make()
            found[name] = rows.reshape(len(rows), -1)
        except (OSError, ImportError, KeyError, IndexError, ValueError, AttributeError) as error:
            print(f"without {name}: {error}")
    return found


def _first_array(path: Path) -> np.ndarray:
    """Return the first array of a file that has at least two axes, or else the first one."""
    arrays = np.load(path)
    return next((arrays[name] for name in arrays if arrays[name].ndim >= 2), arrays[arrays.files[0]])


def _spectra(path: Path) -> np.ndarray:
    """Return magnitudes of short pieces of all sounds of a file, from 0 to 10."""
    sounds = np.load(path)
    pieces = [sounds[name][: len(sounds[name]) // 128 * 128].reshape(-1, 128) for name in sounds if sounds[name].ndim]
    size = np.abs(np.fft.rfft(np.concatenate(pieces) * np.hanning(128), axis=1))[:, 1:65]
    return 10 * size / size.max()


def hand_settings(few: bool) -> list[dict[str, Any]]:
    """Return temperatures, starts, posteriors and numbers of restarts that a user would try: 48, or 12."""
    from multicause.annealing import LinearCooling

    cooling = [
        None,
        *(LinearCooling(temperature, n_iter=60) for temperature in ((3, 10) if few else (2, 4, 8, 16, 32))),
    ]
    products = itertools.product(cooling, ("random", "data"), ("exact",) if few else ("exact", "truncated"), (1, 4))
    return [dict(zip(("annealing", "init", "posterior", "n_init"), each, strict=True)) for each in products]


def compare(task: tuple[str, np.ndarray, bool, float]) -> str:
    """Return a line of the table."""
    name, rows, few, until = task
    from multicause import LinearCauses, MaximalCauses

    warnings.simplefilter("ignore")
    rows = rows[np.random.RandomState(0).permutation(len(rows))[:ROWS]]
    if name in TABLES:
        rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-12)
        model: Any = LinearCauses
    else:
        rows, model = rows[:, rows.std(axis=0) > 0], MaximalCauses
    noise = {"noise": "poisson"} if name in COUNTS else {}
    train, test = rows[::2], rows[1::2]

    def score(settings: dict[str, Any]) -> float:
        fitted = model(COMPONENTS, random_state=0, **noise, **settings).fit(train)
        return float(fitted.score(test)) if fitted.outcome_ != "non_finite" else -np.inf

    default, scores = score({}), []
    for settings in hand_settings(few):
        if monotonic() < until:
            scores.append(score(settings))
    if not scores:
        return f"{name:14s} {len(train):5d} {rows.shape[1]:4d}  {default:10.3f}  (no time for hand settings)"
    low, high = min(scores), max(scores)
    gap = 100 * (high - default) / max(high - low, 1e-9)
    size = f"{name:14s} {len(train):5d} {rows.shape[1]:4d}"
    return f"{size}  {default:10.3f}  {low:10.3f}  {high:10.3f}  {gap:7.1f} %  of {len(scores)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with more data sets")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--few", action="store_true", help="12 hand settings instead of 48")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    found = dict(np.load(arguments.rows)) if arguments.rows else collect(arguments.data)
    if arguments.save:
        np.savez_compressed(arguments.save, **found)
        return
    if arguments.jobs > 1:
        os.environ["OMP_NUM_THREADS"] = "1"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    until = monotonic() + arguments.seconds
    tasks = [(name, rows, arguments.few, until) for name, rows in found.items() if name in (arguments.only or found)]
    print("data            rows cols     default       worst        best  below best")
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for line in pool.imap_unordered(compare, tasks, chunksize=1):
            print(line, flush=True)


if __name__ == "__main__":
    main()
