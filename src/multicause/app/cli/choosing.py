"""Choice of model and preparation by the kind of data, for ``multicause fit --model auto``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multicause.app.cli.models import AUTO, MODELS

# Settings that SpikeAndSlabCauses does not have, and MaximalCauses has.
OTHER_NOISES, OTHER_POSTERIORS = ("poisson", "bernoulli"), ("truncated", "preselected", "evolved")
# Counts have at most this mean; larger whole numbers, such as grey values, are measurements that were rounded.
LARGEST_MEAN_COUNT = 50.0
# Number of random starts for tables of measurements, where one start often ends in a local optimum, and the largest
# number of values for which so many take little time.
STARTS, MOST_VALUES_FOR_STARTS = 5, 1_000_000


@dataclass(frozen=True)
class Choice:
    """Model and preparation of a fit, with reasons for the report."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)  # of the estimator, unless the user gives them
    center: bool = False
    standardize: bool = False
    whiten: bool = False
    reasons: tuple[str, ...] = ()


def choose(
    name: str,
    kind: str,
    rows: np.ndarray,
    *,
    numbers: list[int],
    given: dict[str, Any],
    in_memory: bool = True,
    center: bool | None = None,
    standardize: bool | None = None,
    whiten: bool | None = None,
) -> Choice:
    """Return the model with the given name and the preparation that was asked for; "auto" chooses what is not given.

    ``kind`` is that of :class:`multicause.datasets.reading.UserData`, ``rows`` are some of the rows, ``numbers`` the
    numbers of components that are compared, and ``given`` the settings of the estimator that the user gave. Rows
    that are not ``in_memory`` cannot be prepared.
    """
    choice = automatic(kind, rows, numbers, given, in_memory) if name == AUTO else Choice(name)
    asked = {"center": center, "standardize": standardize, "whiten": whiten}
    steps = {key: getattr(choice, key) if value is None else value for key, value in asked.items()}
    if whiten and standardize is None:
        steps["standardize"] = False
    said = tuple(
        f"Rows were prepared with --{key}." if value else f"--no-{key} was given."
        for key, value in asked.items()
        if value is not None
    )
    return Choice(choice.name, choice.settings, **steps, reasons=(*choice.reasons, *said))


def automatic(kind: str, rows: np.ndarray, numbers: list[int], given: dict[str, Any], in_memory: bool = True) -> Choice:
    """Choose a model and a preparation by the kind of data and its values."""
    noise, posterior = given.get("noise"), given.get("posterior")
    if noise in OTHER_NOISES or posterior in OTHER_POSTERIORS:
        option = f"--noise {noise}" if noise in OTHER_NOISES else f"--posterior {posterior}"
        return Choice("maximal", reasons=(f"MaximalCauses was chosen because {option} was given.",))
    if kind == "patches":
        return _for_patches(rows.shape[1], numbers, given)
    if kind == "spectrogram":
        reason = (
            "MaximalCauses was chosen for spectrograms in decibels: where two sounds meet, the louder one masks the "
            "other. Magnitudes are scaled so that the loudest one is 10 and everything 42.8 dB below it is 0."
        )
        return Choice("maximal", reasons=(reason,))
    if kind == "images":
        reason = "MaximalCauses was chosen for whole images, whose parts occlude each other."
        return Choice("maximal", reasons=(reason,))
    if kind == "waveform":
        reason = "SpikeAndSlabCauses was chosen for waveforms: few causes of any sign and strength add up."
        return Choice("slabs", reasons=(reason,))
    return _for_table(rows, noise, in_memory)


def _for_patches(n_pixels: int, numbers: list[int], given: dict[str, Any]) -> Choice:
    centred = (
        "The mean of each patch was subtracted, so that no component is spent on brightness, and is added to "
        "reconstructions."
    )
    if len(numbers) == 1 and 2 * numbers[0] <= n_pixels and not given:
        reason = (
            "IndependentComponents was chosen: with at most half as many components as pixels it explains more of "
            "held-out patches than the other models for patches."
        )
        return Choice("ica", center=True, reasons=(reason, centred))
    reason = (
        "SpikeAndSlabCauses was chosen for patches of images: few causes of any sign and strength add up, and there "
        "may be more of them than pixels."
    )
    return Choice("slabs", center=True, reasons=(reason, centred))


def _for_table(rows: np.ndarray, noise: str | None, in_memory: bool) -> Choice:
    values = rows[np.isfinite(rows)]
    whole = bool(values.size) and bool((values >= 0).all()) and bool((values == np.rint(values)).all())
    if whole and noise is None and values.max() <= 1:
        reason = "NoisyOrCauses was chosen because all values are 0 or 1: each active cause may switch features on."
        return Choice("noisy-or", reasons=(reason,))
    if whole and noise is None and values.mean() <= LARGEST_MEAN_COUNT:
        reason = (
            "NonnegativeCauses with Poisson noise was chosen because all values are counts (whole numbers from zero): "
            "rates of causes add up, and the variance of a count grows with its mean."
        )
        return Choice("nonnegative", {"noise": "poisson"}, reasons=(reason,))
    if not in_memory:
        name, sign = ("linear", "of any sign") if (values < 0).any() else ("maximal", "that are not negative")
        reason = (
            f"{MODELS[name]} was chosen for values {sign} that exceed the memory budget, so that they cannot be "
            "standardized."
        )
        return Choice(name, reasons=(reason,))
    reason = "SpikeAndSlabCauses was chosen for a table of measurements: few causes of any sign and strength add up."
    scaled = (
        "Columns were standardized, so that their units do not matter, and the noise of each has a variance of its own."
    )
    settings: dict[str, Any] = {"noise": "diagonal_gaussian"}
    if rows.size <= MOST_VALUES_FOR_STARTS:
        settings["n_init"] = STARTS
    return Choice("slabs", settings, standardize=True, reasons=(reason, scaled))
