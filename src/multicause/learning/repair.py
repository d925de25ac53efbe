"""Repair of local optima: recycle the cause that is missed least, and let it share the work of another.

The usual local optimum of causal models has one cause twice (or a cause for rare coincidences) and another that
stands for a mixture of two (MCA08 fig. 7). Each round of repair

1. silences every cause in turn, to find the one whose loss lowers the bound least;
2. gives its place to a perturbed copy of each other cause in turn, and learns a little from all these starts and
   from one in which all weights are lifted off zero;
3. keeps the best of them if its bound is higher, and stops otherwise.

All variants of a round are starts of one program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.engines.base import Blocks, Engine
from multicause.learning.annealing import NoAnnealing
from multicause.learning.convergence import Outcome
from multicause.learning.expectation import expect
from multicause.learning.expectation_maximization import Fit, Progress, learn, per_row
from multicause.model import Model, Parameters

# Iterations that a variant gets to show what it can do, and the rise of the bound per row that ends it before.
TRIAL_ITERATIONS = 40
TRIAL_TOL = 1e-4
# Standard deviation of the factors that make two different causes out of one.
PERTURBATION = 0.5
# How far all weights are lifted in one variant, as part of their mean: a weight that has reached zero makes every
# state without a second cause impossible, and so never gets the credit that would raise it again.
LIFT = 0.2


def repair(
    model: Model,
    engine: Engine,
    blocks: Blocks,
    fit: Fit,
    *,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
) -> Fit:
    """Improve a converged fit until no variant is better, or until ``max_iter`` iterations are done in all."""
    n_components = len(fit.parameters.components)
    if n_components < 2 or "components" not in model.learn:
        return fit
    spent = fit.n_rounds
    while fit.converged and spent < max_iter:
        starts = _variants(model, fit.parameters, _least_missed(model, engine, blocks, fit.parameters), random)
        trial = learn(
            model,
            engine,
            blocks,
            starts,
            annealing=NoAnnealing(),
            max_iter=min(TRIAL_ITERATIONS, max_iter - spent),
            tol=max(tol, TRIAL_TOL),
            key=key,
            watch=_later(watch, spent),
        )
        spent += trial.n_rounds
        if not trial.bound > fit.bound + max(tol, TRIAL_TOL):
            return fit._replace(outcome=trial.outcome) if trial.outcome == Outcome.STOPPED else fit
        fit = _joined(fit, trial)
        if trial.outcome == Outcome.STOPPED or spent >= max_iter:
            return fit
        rest = learn(
            model,
            engine,
            blocks,
            _stacked([trial.parameters]),
            annealing=NoAnnealing(),
            max_iter=max_iter - spent,
            tol=tol,
            key=key,
            watch=_later(watch, spent),
        )
        spent += rest.n_rounds
        fit = _joined(fit, rest)
    return fit


def _least_missed(model: Model, engine: Engine, blocks: Blocks, parameters: Parameters) -> int:
    """The cause without which the bound stays highest."""
    n_components = len(parameters.components)
    silenced = [parameters._replace(prior=model.prior.without(parameters.prior, h)) for h in range(n_components)]
    variants = _stacked(silenced)
    sums = engine.sum(partial(expect, model), blocks, variants, jnp.ones(n_components))
    return int(np.argmax(per_row(sums, "bound")[0]))


def _variants(model: Model, parameters: Parameters, recycled: int, random: np.random.RandomState) -> Parameters:
    """One start for each cause, in which the recycled cause shares its place; (H, ...) in all arrays."""
    components: Any = parameters.components
    starts = []
    for source in range(len(components)):
        factors = np.asarray(PERTURBATION * random.normal(size=components.shape[1]), dtype=components.dtype)
        moved = components.copy()
        if source == recycled and model.combination.nonnegative:
            moved += LIFT * components.mean()
        else:
            moved[recycled] = components[source] * (1 + factors)
            moved[source] = components[source] * (1 - factors)
        if model.combination.nonnegative:
            moved = np.abs(moved)
        prior = model.prior.copied(parameters.prior, source, recycled)
        starts.append(parameters._replace(components=moved, prior=prior))
    return _stacked(starts)


def _stacked(variants: list[Parameters]) -> Parameters:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *variants)


def _joined(first: Fit, then: Fit) -> Fit:
    """The second fit, with the history of the first before its own."""
    return then._replace(
        bounds=np.concatenate([first.bounds, then.bounds[1:]]),
        temperatures=np.concatenate([first.temperatures, then.temperatures[1:]]),
        n_iter=first.n_iter + then.n_iter,
    )


def _later(watch: Callable[[Progress], bool] | None, offset: int) -> Callable[[Progress], bool] | None:
    """The same watcher, with iterations counted on."""
    if watch is None:
        return None
    return lambda progress: watch(progress._replace(iteration=progress.iteration + offset))
