"""Repair of local optima: recycle the cause that is missed least, and let it share the work of another.

The usual local optimum of causal models has one cause twice (or a cause for rare coincidences) and another that
stands for a mixture of two (MCA08 fig. 7). Each round of repair

1. silences every cause in turn, to find the one whose loss lowers the bound least;
2. gives its place to a perturbed copy of each other cause in turn, and learns a little from all these starts and
   from one in which all weights are lifted off zero, more from the best of them;
3. keeps the winner if its bound is higher; otherwise the next cause in line is recycled, and after some the fit stays.

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
from multicause.learning.expectation_maximization import (
    Fit,
    Progress,
    best_of,
    joined,
    later,
    learn,
    learn_all,
    one_start,
    per_row,
)
from multicause.model import Model, Parameters

# Iterations that variants get to show what they can do, and how many of them go on; and the rise of the bound per row
# that ends a variant before.
ROUNDS = ((8, 4), (20, 1))
TRIAL_TOL = 1e-4
# Causes that are recycled one after the other, from the least missed on, before repair gives up.
ATTEMPTS = 3
# Variants that are tried at most in one round.
MOST_VARIANTS = 24
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
    spent, failures = fit.n_rounds, 0
    while fit.converged and spent < max_iter:
        if failures == 0:
            least_missed = _least_missed(model, engine, blocks, fit.parameters)
        starts = _variants(model, fit.parameters, least_missed[failures], random)
        trial = _tournament(
            model, engine, blocks, starts, max_iter=max_iter - spent, tol=tol, key=key, watch=later(watch, spent)
        )
        spent += trial.n_rounds
        if not trial.bound > fit.bound + max(tol, TRIAL_TOL):
            failures += 1
            if trial.outcome == Outcome.STOPPED:
                return fit._replace(outcome=trial.outcome)
            if failures == min(ATTEMPTS, n_components):
                return fit
            continue
        failures = 0
        fit = joined(fit, trial)
        if trial.outcome == Outcome.STOPPED or spent >= max_iter:
            return fit
        rest = learn(
            model,
            engine,
            blocks,
            one_start(trial.parameters),
            annealing=NoAnnealing(),
            max_iter=max_iter - spent,
            tol=tol,
            key=key,
            watch=later(watch, spent),
        )
        spent += rest.n_rounds
        fit = joined(fit, rest)
    return fit


def _promising(model: Model, parameters: Parameters, recycled: int) -> list[int]:
    """Causes that may stand for a mixture: those that explain most of the data, and the one to be recycled."""
    activity = np.asarray(model.prior.activity(parameters.prior), dtype=float)
    energy = activity * np.sum(np.asarray(parameters.components, dtype=float) ** 2, axis=1)
    energy[recycled] = np.inf
    return sorted(np.argsort(energy)[::-1][:MOST_VARIANTS].tolist())


def _tournament(
    model: Model, engine: Engine, blocks: Blocks, starts: Parameters, *, max_iter: int, **settings: Any
) -> Fit:
    """Learn a little from all variants and more from those that do best."""
    spent = 0
    tol = max(settings.pop("tol"), TRIAL_TOL)
    for iterations, survivors in ROUNDS:
        trials = learn_all(
            model,
            engine,
            blocks,
            starts,
            annealing=NoAnnealing(),
            max_iter=max(1, min(iterations, max_iter - spent)),
            tol=tol,
            **settings,
        )
        spent += trials.n_rounds
        if spent >= max_iter or (trials.outcome == Outcome.STOPPED).any():
            break
        bounds = np.where(np.isfinite(trials.bound), trials.bound, -np.inf)
        best = np.argsort(bounds)[::-1][:survivors]
        starts = jax.tree.map(lambda leaf, best=best: leaf[best], trials.parameters)
    return best_of(trials, blocks)._replace(n_rounds=spent)


def _least_missed(model: Model, engine: Engine, blocks: Blocks, parameters: Parameters) -> list[int]:
    """Causes in the order in which the bound falls without them, least first."""
    n_components = len(parameters.components)
    silenced = [parameters._replace(prior=model.prior.without(parameters.prior, h)) for h in range(n_components)]
    variants = _stacked(silenced)
    sums = engine.sum(partial(expect, model), blocks, variants, jnp.ones(n_components))
    return np.argsort(per_row(sums, "bound")[0])[::-1].tolist()


def _variants(model: Model, parameters: Parameters, recycled: int, random: np.random.RandomState) -> Parameters:
    """One start for each of some causes, in which the recycled cause shares its place."""
    components: Any = parameters.components
    starts = []
    for source in _promising(model, parameters, recycled):
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
