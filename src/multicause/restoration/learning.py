"""Spike-and-slab causes learned from patches of the image that is to be restored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multicause.callbacks.adapter import Iteration, IterationCallback
from multicause.models.spike_and_slab_causes import SpikeAndSlabCauses
from multicause.outcomes import Outcome
from multicause.posteriors import Beam
from multicause.restoration.patch_posterior import LearnedComponents

# Probabilities of causes stay away from zero, so that a cause that is not used at first can be used later.
LEAST_ACTIVITY = 1e-6
# Noise of patches that are explained completely, in deviations of the image: its inverse must stay finite.
LEAST_NOISE = 1e-3


def learn_components(
    rows: np.ndarray,
    n_components: int,
    *,
    noise_level: float,
    max_active: int,
    width: int,
    max_iter: int,
    random: np.random.RandomState,
    before: LearnedComponents | None = None,
    progress: Callable[[float], None] | None = None,
) -> LearnedComponents:
    """Return components learned from rows (n, D), from rows as a start or from those learned ``before``.

    Learning ends after ``max_iter`` iterations, converged or not: restoration does not gain from more.
    """
    model = SpikeAndSlabCauses(
        n_components,
        posterior=Beam(max_active, width),
        activity=None if before is None else before.activity,
        noise_scale=noise_level,
        init="data" if before is None else before.components,
        annealing="auto" if before is None else None,
        max_iter=max_iter,
        random_state=random,
    )
    if progress is not None:
        model.set_callbacks(_Progress(progress, max_iter))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows)
    if model.outcome_ == Outcome.STOPPED:
        raise KeyboardInterrupt  # components of a fit that was stopped early would restore badly
    activity = np.clip(model.activity_, LEAST_ACTIVITY, 0.5)
    noise_variance = max(float(model.noise_variance_), LEAST_NOISE**2)
    return LearnedComponents(model.components_, activity, model.slab_variance_, noise_variance)


class _Progress(IterationCallback):
    """Callback that reports the fraction of iterations that are done."""

    every_iteration = False

    def __init__(self, report: Callable[[float], None], max_iter: int) -> None:
        self._report, self._max_iter, self._seen = report, max_iter, 0

    def begin(self, estimator: Any) -> None:
        """Reset the count of iterations before a new fit."""
        self._seen = 0

    def after(self, iteration: Iteration) -> bool:
        """Report the progress; never stop the fit."""
        self._seen += 1
        self._report(min(1.0, self._seen / self._max_iter))
        return False
