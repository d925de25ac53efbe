"""Defaults against settings by hand, on data that nobody picked: ``python -m benchmarks.untuned``.

Data sets come with scikit-learn and scikit-image, or lie in a folder (``--data``, with the names below). Of each, half
of at most 800 rows (``--most-rows``) are learned from by LinearCauses (tables, centred) or MaximalCauses (images,
spectra, counts), with nothing but ``n_components`` given and with each of 50 hand settings. The score of a setting is
its mean over ``--repeats`` choices of rows and random numbers: of 50 single scores, the highest is to a large part
that of the luckiest choice. The table has the held-out score of the defaults, the worst and the best of the hand
settings, and how far the defaults are below the best, in percent of the range between the worst and the best
(negative: better than all of them), with the standard error of that. The last column is the same for the rows that
were learned from: where it is zero or less, no hand setting finds better optima. At the end, the defaults are compared
with the best settings over all data sets, and with those that a user would choose who tries all of them on each data
set: the one with the highest likelihood of the learned rows, and, with several repetitions, the one with the best
held-out score in the others. No method that does not see the held-out rows can be expected to be much better.

``--save FILE`` keeps ``--most-rows`` rows of all data sets for ``--rows FILE`` on another machine; ``--jobs`` runs fits
side by side, and ``--seconds`` begins no fit after that time.
"""

import argparse
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.side_by_side import add_options, run_side_by_side

COMPONENTS, PATCH = 8, 8
TABLES = ("iris", "wine", "breast_cancer", "diabetes", "linnerud")
PICTURES = ("camera", "coins", "brick", "grass", "gravel", "moon", "page", "text", "clock")
# Data sets whose rows are counts.
COUNTS = ("digits", "mnist")


def patches(image: np.ndarray, n_rows: int) -> np.ndarray:
    """Return random patches of an image, from 0 to 10."""
    image = np.asarray(image, dtype=float)
    image = image.mean(axis=2) if image.ndim == 3 else image
    places = np.lib.stride_tricks.sliding_window_view(image / image.max() * 10, (PATCH, PATCH)).reshape(-1, PATCH**2)
    return places[np.random.RandomState(0).choice(len(places), min(n_rows, len(places)), replace=False)]


def collect(folder: Path | None, most_rows: int) -> dict[str, np.ndarray]:
    """Return the rows of all data sets that are to be had here, and name the others."""
    import sklearn.datasets

    makers: dict[str, Callable[[], np.ndarray]] = {
        name: (lambda name=name: getattr(sklearn.datasets, f"load_{name}")().data) for name in (*TABLES, "digits")
    }
    makers |= {
        name: (lambda name=name: patches(sklearn.datasets.load_sample_image(f"{name}.jpg"), most_rows))
        for name in ("china", "flower")
    }

    def bundled(name: str) -> np.ndarray:
        import skimage.data

        if name == "faces":
            return skimage.data.lfw_subset()[:100, ::3, ::3].reshape(100, -1) * 10
        return patches(getattr(skimage.data, name)(), most_rows)

    makers |= {name: (lambda name=name: bundled(name)) for name in (*PICTURES, "faces")}
    if folder is not None:
        makers |= {
            "mnist": lambda: _digits(folder / "mnist" / "mnist_test.npz")[:most_rows],
            "swimmer": lambda: _first_array(folder / "swimmer" / "swimmer.npz").reshape(-1, 32, 32)[:, ::4, ::4] * 1.0,
            "dune": lambda: patches(np.load(folder / "natural_free" / "natural_free.npz")["mate_Dune"], most_rows),
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


def _digits(path: Path) -> np.ndarray:
    """Return images of digits at a quarter of their resolution, with values of up to ten."""
    images = _first_array(path)[:, ::4, ::4]
    return images.reshape(len(images), -1) / 25.0


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


def scores_of(task: tuple[str, np.ndarray, int, int, int, int]) -> tuple[float, float]:
    """Return scores of held-out and of learned rows with one of the hand settings, or with defaults (number 0)."""
    from multicause import LinearCauses, MaximalCauses

    warnings.simplefilter("ignore")
    name, rows, number, n_settings, seed, most_rows = task
    rows = rows[np.random.RandomState(seed).permutation(len(rows))[:most_rows]]
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


def line(name: str, scores: np.ndarray, settings: list[dict[str, Any]]) -> str:
    """Return a line of the table, given scores (settings, repetitions, 2), the defaults first."""
    scores = with_worst(scores[:, ~np.isnan(scores).any(axis=(0, 2))])
    if not np.isfinite(scores).all() or not scores.size:
        return f"{name:14s}  (no time, or no finite score)"
    held_out, learned = compared(scores[..., 0]), compared(scores[..., 1])
    return (
        f"{name:14s}  {held_out.default:10.3f}  {held_out.low:10.3f}  {held_out.high:10.3f}  "
        f"{held_out.gap:7.1f} ± {held_out.error:.1f} %  {learned.gap:7.1f} %  {settings[held_out.best]}"
    )


def overall(scores: list[np.ndarray], settings: list[dict[str, Any]]) -> str:
    """Return how far defaults and the best three settings over all data sets are below the best of each data set."""
    n_all = len(scores)
    scores = [own for own in map(with_worst, scores) if np.isfinite(own).all()]
    if not scores:
        return ""
    gaps = np.array([below_best(own[..., 0].mean(axis=1), own[1:, :, 0].mean(axis=1)) for own in scores])
    lines = [
        "",
        f"{len(gaps)} of {n_all} data sets: mean and median below the best of each, and how many are within 1 and 5 %",
    ]
    named = [
        ("defaults", gaps[:, 0]),
        ("the setting with the highest likelihood of learned rows", gaps_of_chosen(scores, likeliest)),
    ]
    if scores[0].shape[1] > 1:
        named += [
            ("the setting with the best held-out score in other repetitions", gaps_of_chosen(scores, best_of_others))
        ]
    named += [(str(settings[number]), gaps[:, 1 + number]) for number in np.argsort(gaps[:, 1:].mean(axis=0))[:3]]
    for name, own in named:
        within = f"{np.sum(own <= 1)} and {np.sum(own <= 5)}"
        lines.append(f"  {own.mean():5.1f} %  {np.median(own):5.1f} %  {within:9s}  {name}")
    return "\n".join(lines)


def with_worst(scores: np.ndarray) -> np.ndarray:
    """Return scores (settings, repetitions, 2) in which fits that are not finite have the worst score of all others."""
    failed = np.isneginf(scores)
    return np.where(failed, np.where(failed, np.inf, scores).min(axis=0, keepdims=True), scores)


def below_best(score: Any, others: np.ndarray) -> Any:
    """Return how far a score is below the best of the others, in percent of the range between their worst and best."""
    return 100 * (others.max() - score) / max(np.ptp(others), 1e-9)


def likeliest(scores: np.ndarray) -> np.ndarray:
    """Return the setting with the highest score of learned rows in each repetition."""
    return scores[..., 1].argmax(axis=0)


def best_of_others(scores: np.ndarray) -> np.ndarray:
    """Return for each repetition the setting with the highest mean held-out score in all others."""
    held_out = scores[..., 0]
    return (held_out.sum(axis=1, keepdims=True) - held_out).argmax(axis=0)


def gaps_of_chosen(scores: list[np.ndarray], choose: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return how far the settings that are chosen in each repetition are below the best, for each data set."""
    gaps = []
    for own in (own[1:] for own in scores):
        chosen = own[choose(own), range(own.shape[1]), 0].mean()
        gaps.append(below_best(chosen, own[..., 0].mean(axis=1)))
    return np.array(gaps)


class Comparison(NamedTuple):
    """Mean score of the defaults, worst and best mean of the others, and how far the defaults are below the best."""

    default: float
    low: float
    high: float
    gap: float  # in percent of the range
    error: float  # standard error of the gap
    best: int  # number of the best setting


def compared(scores: np.ndarray) -> Comparison:
    """Compare the scores (settings, repetitions) of the defaults, which are first, with those of all others."""
    means = scores.mean(axis=1)
    low, high, best = float(means[1:].min()), float(means[1:].max()), int(means[1:].argmax())
    unit = 100 / max(high - low, 1e-9)
    differences = scores[1 + best] - scores[0]
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.nan
    return Comparison(float(means[0]), low, high, unit * (high - float(means[0])), unit * float(error), best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with more data sets")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--most-rows", type=int, default=800, help="rows of a data set, half of which are held out")
    parser.add_argument("--repeats", type=int, default=4, help="choices of rows and random numbers")
    parser.add_argument("--scores", type=Path, help="file for the scores of all fits")
    parser.add_argument("--settings", type=int, default=50, help="number of hand settings")
    add_options(parser)
    arguments = parser.parse_args()
    if arguments.settings < 2:
        parser.error(f"--settings must be at least 2, so that they have a range; got {arguments.settings}")
    data_sets = dict(np.load(arguments.rows)) if arguments.rows else collect(arguments.data, arguments.most_rows)
    if arguments.save:
        np.savez_compressed(arguments.save, **data_sets)
        return
    names = [name for name in data_sets if name in (arguments.only or data_sets)]
    tasks = [
        (name, data_sets[name], number, arguments.settings, arguments.seed + repetition, arguments.most_rows)
        for repetition in range(arguments.repeats)
        for number in range(arguments.settings + 1)
        for name in names
    ]
    shape = (arguments.settings + 1, arguments.repeats, 2)
    scores = {name: np.full(shape, np.nan) for name in names}
    for (name, _, number, _, seed, _), own in run_side_by_side(scores_of, tasks, arguments.jobs, arguments.seconds):
        scores[name][number, seed - arguments.seed] = own
    if arguments.scores:
        np.savez_compressed(arguments.scores, **scores)
    print("data               default       worst        best  below best          learned  best setting")
    for name, own in scores.items():
        print(line(name, own, hand_settings(arguments.settings)))
    print(overall(list(scores.values()), hand_settings(arguments.settings)))


if __name__ == "__main__":
    main()
