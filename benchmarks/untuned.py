"""Defaults against settings by hand, on data that nobody picked: ``python -m benchmarks.untuned``.

Data sets come with scikit-learn and scikit-image, or lie in a folder (``--data``, with the names below). Of each, half
of at most 800 rows are learned from by LinearCauses (tables, centred) or MaximalCauses (images, spectra, counts), with
nothing but ``n_components`` given and with each of 50 hand settings. The table has the held-out score of the
defaults, the worst and the best of the hand settings, and how far the defaults are below the best, in percent of the
range between the worst and the best (negative: better than all of them). The last column is the same for the rows that
were learned from: where it is zero or less, no hand setting has found a better optimum, and the best held-out score is
that of the setting whose optimum happens to suit those rows.

``--save FILE`` keeps the rows of all data sets for ``--rows FILE`` on another machine; ``--jobs`` runs fits side by
side, and ``--seconds`` begins no fit after that time.
"""

import argparse
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side_by_side import add_options, run_side_by_side

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
    data_sets = {}
    for name, make in makers.items():
        try:
            rows = make()
            data_sets[name] = rows.reshape(len(rows), -1)
        except (OSError, ImportError, KeyError, IndexError, ValueError, AttributeError) as error:
            print(f"without {name}: {error}")
    return data_sets


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


def hand_settings(n_settings: int) -> list[dict[str, Any]]:
    """Return temperatures, starts, posteriors and numbers of restarts that a user would try, at most 50, shuffled."""
    from multicause.annealing import LinearCooling

    cooling = [None, *(LinearCooling(temperature, n_iter=60) for temperature in (2, 4, 8, 16, 32))]
    names = ("annealing", "init", "posterior", "n_init")
    products = itertools.product(cooling, ("random", "data"), ("exact", "truncated"), (1, 4))
    settings = [dict(zip(names, values, strict=True)) for values in products]
    settings += [{"annealing": None, "init": start, "n_init": 16} for start in ("random", "data")]
    return [settings[place] for place in np.random.RandomState(0).permutation(len(settings))[:n_settings]]


def scores_of(task: tuple[str, np.ndarray, int, int, int]) -> tuple[float, float]:
    """Return scores of held-out and of learned rows with one of the hand settings, or with defaults (number 0)."""
    from multicause import LinearCauses, MaximalCauses

    warnings.simplefilter("ignore")
    name, rows, number, n_settings, seed = task
    rows = rows[np.random.RandomState(seed).permutation(len(rows))[:ROWS]]
    model: Any = LinearCauses if name in TABLES else MaximalCauses
    if name in TABLES:
        rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-12)
    else:
        rows = rows[:, rows.std(axis=0) > 0]
    noise = {"noise": "poisson"} if name in COUNTS else {}
    settings = hand_settings(n_settings)[number - 1] if number else {}
    fitted = model(COMPONENTS, random_state=seed, **noise, **settings).fit(rows[::2])
    if fitted.outcome_ == "non_finite":
        return -np.inf, -np.inf
    return float(fitted.score(rows[1::2])), float(fitted.score(rows[::2]))


def line(name: str, scores: dict[int, tuple[float, float]]) -> str:
    """Return a line of the table, given the scores by number of the settings."""
    if 0 not in scores or len(scores) < 3:
        return f"{name:14s}  (no time)"
    held_out, learned = zip(*(scores[number] for number in sorted(scores)), strict=True)
    default, low, high, gap = compared(held_out)
    return f"{name:14s}  {default:10.3f}  {low:10.3f}  {high:10.3f}  {gap:7.1f} %  {compared(learned)[3]:7.1f} %"


def compared(scores: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Return the first score, the worst and the best of the others, and how far it is below the best, in percent."""
    default, *others = scores
    finite = [score for score in others if np.isfinite(score)]
    low, high = min(finite), max(finite)
    return default, low, high, 100 * (high - default) / max(high - low, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with more data sets")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--settings", type=int, default=50, help="number of hand settings")
    add_options(parser)
    arguments = parser.parse_args()
    data_sets = dict(np.load(arguments.rows)) if arguments.rows else collect(arguments.data)
    if arguments.save:
        np.savez_compressed(arguments.save, **data_sets)
        return
    names = [name for name in data_sets if name in (arguments.only or data_sets)]
    tasks = [
        (name, data_sets[name], number, arguments.settings, arguments.seed)
        for number in range(arguments.settings + 1)
        for name in names
    ]
    scores: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in names}
    for (name, _, number, *_), own in run_side_by_side(scores_of, tasks, arguments.jobs, arguments.seconds):
        scores[name][number] = own
    print("data               default       worst        best  below best    learned")
    for name, own in scores.items():
        print(line(name, own))


if __name__ == "__main__":
    main()
