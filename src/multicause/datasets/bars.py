"""Bars test: images of horizontal and vertical bars, the standard benchmark for hidden causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_random_state

from multicause.datasets.checks import check_probabilities, one_per_cause, positive, whole

# Image size of each kind where the papers do not use 5×5.
PUBLISHED_SIZES = {"overlapping": 9, "short": 3}
# Grey values of GSN07 figure 4, which shows six bars of different intensity and width but gives no numbers: thin, thick
# and thin bars in both orientations, as fractions of ``value``, thick ones darker.
INTENSITIES = (1.0, 0.5, 0.8, 0.9, 0.6, 0.7)
# Number of redraws after which ``min_active`` is declared impossible.
MAX_ROUNDS = 10_000


def make_bars(
    n_samples: int = 500,
    *,
    kind: str = "standard",
    size: int | None = None,
    activity: float | ArrayLike | None = None,
    value: float = 10.0,
    combination: str | None = None,
    noise: str | None = None,
    noise_scale: float = 2.0,
    levels: Sequence[float] | None = None,
    min_active: int = 0,
    imbalance: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate images of overlapping bars, with their true causes.

    Parameters
    ----------
    n_samples : int, default=500
        Number of images.
    kind : str, default="standard"
        Kind of bars. All kinds but "overlapping" and "short" have bars across the whole image:

        - "standard": every row and every column (MCA08 §6.1);
        - "overlapping": two pixels wide, at every position, so that neighbours overlap (MCA08 §6.6);
        - "widths": widths 1, size − 2, 1 for each orientation (MCA08 §6.6);
        - "intensities": the same widths, and a different grey value for each bar (GSN07 fig. 4);
        - "short": two pixels long, one wide, at every position (MCA08 §6.7);
        - "signed": standard, every second bar with negative pixels (ET10 §4.3.1);
        - "unequal": standard, every second bar more frequent than the others (MCA08 §6.6).
    size : int, optional
        Side of the image; by default the papers' 5, but 9 for "overlapping" and 3 for "short".
    activity : float or array-like of shape (n_causes,), optional
        Probability of each bar; by default two bars per image on average.
    value : float, default=10.0
        Pixel value of a bar.
    combination : {"max", "max_magnitude", "sum", "noisy_or"}, optional
        How overlapping bars combine; by default "max", but "sum" for signed bars. With "max_magnitude", the bar that is
        farthest from zero is in front, and of two with the same magnitude the positive one. With "noisy_or", pixel
        values are probabilities with which each bar switches a pixel on.
    noise : {None, "poisson", "gaussian", "bernoulli"}, default=None
        Noise on the pixels. "bernoulli" makes pixels of zeros and ones, with the mean as probability of a one; give a
        ``value`` of at most one then, such as 0.8.
    noise_scale : float, default=2.0
        Standard deviation of Gaussian noise.
    levels : sequence of float, optional
        Strengths of active bars, as multiples of ``value``, drawn with equal probabilities: (-1, 1) for bars of which
        each may be positive or negative. Such bars add up; by default all bars have the strength one.
    min_active : int, default=0
        Images with fewer bars are drawn again (MCA08 §6.8).
    imbalance : float, default=0.5
        γ of "unequal": probabilities are (1 ± γ) times the average.
    random_state : int or RandomState, optional
        Seed.

    Returns
    -------
    Bunch
        ``data`` (n_samples, D), ``causes`` (n_causes, D), ``states`` (n_samples, n_causes) with zeros and ones or
        levels, ``activity`` (n_causes,), ``image_shape``.
    """
    n_samples = whole(n_samples, "n_samples", 1)
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}. Known: {', '.join(map(repr, KINDS))}.")
    size = PUBLISHED_SIZES.get(kind, 5) if size is None else whole(size, "size", 3)
    value = positive(value, "value")
    adding = kind == "signed" or levels is not None
    combination = ("sum" if adding else "max") if combination is None else combination
    if combination not in ("max", "max_magnitude", "sum", "noisy_or"):
        raise ValueError(f"Unknown combination {combination!r}. Known: 'max', 'max_magnitude', 'sum', 'noisy_or'.")
    if kind == "signed" and combination == "max":
        raise ValueError(
            "Signed bars cannot be combined by 'max', which would hide the negative ones; use 'sum' or 'max_magnitude'."
        )
    if noise not in (None, "poisson", "gaussian", "bernoulli"):
        raise ValueError(f"Unknown noise {noise!r}. Known: None, 'poisson', 'gaussian', 'bernoulli'.")
    if combination == "noisy_or" or noise == "bernoulli":
        _check_probabilities_of_pixels(kind, value, combination)
    if kind == "signed" and noise == "poisson":
        raise ValueError("Signed bars have negative means, which Poisson noise cannot have; use 'gaussian'.")
    if noise == "gaussian" and not (isinstance(noise_scale, Real) and np.isfinite(noise_scale) and noise_scale > 0):
        raise ValueError(f"noise_scale must be a positive number; got {noise_scale!r}. Use noise=None for no noise.")

    causes = value * KINDS[kind](size).reshape(-1, size * size)
    probabilities = _activities(activity, kind, len(causes), imbalance)
    min_active = whole(min_active, "min_active", 0)
    random = check_random_state(random_state)
    states = _draw_states(random, n_samples, probabilities, min_active)
    if levels is not None:
        states = states * random.choice(_strengths(levels, combination), size=states.shape)
    means = _combine(states, causes, combination)
    if noise == "poisson":
        data = random.poisson(means).astype(float)
    elif noise == "gaussian":
        data = means + noise_scale * random.normal(size=means.shape)
    elif noise == "bernoulli":
        data = (random.uniform(size=means.shape) < means).astype(float)
    else:
        data = means
    return Bunch(data=data, causes=causes, states=states, activity=probabilities, image_shape=(size, size))


def _check_probabilities_of_pixels(kind: str, value: float, combination: str) -> None:
    """Raise ValueError if means of pixels would not be probabilities."""
    if kind in ("signed", "intensities") or combination == "sum":
        raise ValueError(
            f"Bars of kind {kind!r} that combine by {combination!r} have means that are no probabilities; use another "
            "kind with combination 'max' or 'noisy_or', or another noise."
        )
    if value > 1:
        raise ValueError(f"value is the probability of a pixel here and must be at most 1, such as 0.8; got {value!r}.")


def _strengths(levels: Sequence[float], combination: str) -> np.ndarray:
    """Return the strengths of active bars; raise ValueError if they are zero, or if bars do not add up."""
    strengths = np.asarray(levels, dtype=float)
    if strengths.ndim != 1 or not len(strengths) or not (np.isfinite(strengths) & (strengths != 0)).all():
        raise ValueError(f"levels must be a sequence of numbers other than zero, such as (-1, 1); got {levels!r}.")
    if combination != "sum":
        raise ValueError(f"Bars with levels add up: use combination='sum' or None; got {combination!r}.")
    return strengths


def _both_orientations(horizontal: list[np.ndarray]) -> np.ndarray:
    return np.array(horizontal + [bar.T for bar in horizontal])


def _bands(size: int, starts_and_widths: list[tuple[int, int]]) -> np.ndarray:
    """Return bars across the image, first horizontal, then vertical."""
    bars = []
    for start, width in starts_and_widths:
        bar = np.zeros((size, size))
        bar[start : start + width] = 1
        bars.append(bar)
    return _both_orientations(bars)


def _standard(size: int) -> np.ndarray:
    return _bands(size, [(row, 1) for row in range(size)])


def _overlapping(size: int) -> np.ndarray:
    return _bands(size, [(row, 2) for row in range(size - 1)])


def _widths(size: int) -> np.ndarray:
    return _bands(size, [(0, 1), (1, size - 2), (size - 1, 1)])


def _intensities(size: int) -> np.ndarray:
    return _widths(size) * np.array(INTENSITIES)[:, None, None]


def _short(size: int) -> np.ndarray:
    bars = []
    for row in range(size):
        for column in range(size - 1):
            bar = np.zeros((size, size))
            bar[row, column : column + 2] = 1
            bars.append(bar)
    return _both_orientations(bars)


def _signed(size: int) -> np.ndarray:
    bars = _standard(size)
    bars[1::2] *= -1
    return bars


KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "standard": _standard,
    "overlapping": _overlapping,
    "widths": _widths,
    "intensities": _intensities,
    "short": _short,
    "signed": _signed,
    "unequal": _standard,
}


def _activities(activity: float | ArrayLike | None, kind: str, n_causes: int, imbalance: float) -> np.ndarray:
    probabilities = one_per_cause(activity, n_causes, "bar")
    if kind == "unequal":
        if not 0 <= imbalance < 1:
            raise ValueError(f"imbalance must lie in [0, 1); got {imbalance!r}.")
        # MCA08 counts bars from one and makes the even ones frequent.
        probabilities[1::2] *= 1 + imbalance
        probabilities[0::2] *= 1 - imbalance
    check_probabilities(probabilities, "bar", "activity and imbalance")
    return probabilities


def _draw_states(
    random: np.random.RandomState, n_samples: int, probabilities: np.ndarray, min_active: int
) -> np.ndarray:
    if min_active > len(probabilities):
        raise ValueError(f"min_active={min_active} exceeds the number of bars, {len(probabilities)}.")
    states = random.uniform(size=(n_samples, len(probabilities))) < probabilities
    for _ in range(MAX_ROUNDS):
        sparse = states.sum(axis=1) < min_active
        if not sparse.any():
            return states.astype(int)
        states[sparse] = random.uniform(size=(sparse.sum(), len(probabilities))) < probabilities
    raise ValueError(f"Images with {min_active} bars or more are too rare at these activities; lower min_active.")


def _combine(states: np.ndarray, causes: np.ndarray, combination: str) -> np.ndarray:
    if combination == "sum":
        return states @ causes
    if combination == "noisy_or":
        return 1 - np.prod(np.where(states[:, :, None] > 0, 1 - causes, 1.0), axis=1)
    largest, smallest = np.zeros((2, len(states), causes.shape[1]))
    for state, cause in zip(states.T, causes, strict=True):
        np.maximum(largest, state[:, None] * cause, out=largest)
        np.minimum(smallest, state[:, None] * cause, out=smallest)
    return largest if combination == "max" else np.where(largest >= -smallest, largest, smallest)
