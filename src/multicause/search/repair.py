"""Repair of local optima: reuse the cause that contributes least as a second copy of another cause.

The usual local optimum of causal models has one cause twice (or a cause for rare coincidences) and another that
represents a mixture of two (MCA08 fig. 7). Each round of repair

1. finds the cause whose removal would lower the bound least, from the probabilities of all causes in all rows;
2. replaces it by a perturbed copy of each other cause in turn, and runs a few iterations from all these starts and
   from one in which all weights are raised above zero, and more iterations from the best of them; if causes are dead,
   some more starts have residuals of the rows that are explained worst in place of all of them;
3. keeps the winner if its bound is higher; otherwise the next cause in order is replaced, and after some failures the
   fit stays as it is. Variants that fall far behind are dropped early.

All variants of a round are starts of one loop of EM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import Array
from multicause.em.driver import run_loop
from multicause.em.loop import learn, learn_all
from multicause.em.results import (
    FitResult,
    Progress,
    StartResults,
    Watcher,
    best_of,
    concatenate_history,
    dead_causes,
    offset_iterations,
    one_start,
)
from multicause.engines.base import Data
from multicause.inference import active_causes
from multicause.model import Block, Model, Parameters
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.search.revival import revive, worst_rows

# Iterations of each round and number of variants that survive it, and the rise of the bound per row below which a
# variant ends early. Nearly all variants that win are among the best four after three iterations.
ROUNDS = ((3, 4), (5, 2), (20, 1))
TRIAL_TOL = 1e-4
# A variant is dropped if it would not reach the bound of the fit within this many iterations at the rate of its last
# round.
HORIZON = 25
# Number of causes that are recycled one after the other, those with the smallest contribution first, before repair
# stops.
ATTEMPTS = 3
# Largest number of variants in one round.
MOST_VARIANTS = 24
# Number of variants in which dead causes come back, each with other rows.
REVIVALS = 3
# Smallest probability left to the other states: rounding leaves none where a cause is certain.
LEAST_REMAINING = 1e-12
# Standard deviation of the random factors that turn one cause into two different ones.
PERTURBATION = 0.5
# Amount by which all weights are raised in one variant, relative to their mean. A weight that has reached zero makes
# every state without a second cause impossible, and so never gets the credit that would raise it again.
LIFT = 0.2


class Repair(NamedTuple):
    """State of repair between two tournaments."""

    fit: FitResult
    spent: int  # iterations so far, including those of failed attempts
    failures: int = 0  # causes that were recycled without success since the last success
    least_missed: tuple[int, ...] = ()
    winner: Parameters | None = None  # better variant that has not converged yet
    given_up: bool = False


def repair(
    model: Model,
    data: Data,
    fit: FitResult,
    *,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
    key: Array,
    watch: Callable[[Progress], bool] | None = None,
    journal: Journal | None = None,
    places: int | None = None,
) -> FitResult:
    """Improve a converged fit until no variant is better, or until ``max_iter`` iterations in total."""
    n_components = len(fit.parameters.components)
    if n_components < 2 or "components" not in model.learn:
        return fit
    journal = journal or Journal()
    settings: dict[str, Any] = {"tol": tol, "key": key, "journal": journal, "places": places}

    def attempt(state: Repair) -> Repair:
        """Try to recycle one cause."""
        if state.failures == 0:
            state = state._replace(least_missed=tuple(least_missed(model, data, state.fit.parameters)))
        recycled = state.least_missed[state.failures]
        trial = _tournament(
            model,
            data,
            partial(_all_variants, model, data, state.fit, recycled, random, lifted=state.failures == 0),
            to_beat=state.fit.bound,
            max_iter=max_iter - state.spent,
            watch=report_best(watch, state.fit, state.spent),
            **settings,
        )
        state = state._replace(spent=state.spent + trial.n_rounds)
        stopped = trial.outcome == Outcome.STOPPED
        if not trial.bound > state.fit.bound + max(tol, TRIAL_TOL):
            failures = state.failures + 1
            kept = state.fit._replace(outcome=Outcome.STOPPED, converged=False) if stopped else state.fit
            given_up = stopped or failures == min(ATTEMPTS, n_components)
            return state._replace(fit=kept, failures=failures, given_up=given_up)
        state = state._replace(fit=concatenate_history(state.fit, trial), failures=0)
        if stopped or state.spent >= max_iter:
            return state._replace(given_up=True)
        return state._replace(winner=trial.parameters)

    def finish(state: Repair) -> Repair:
        """Run EM from the winner until it converges."""
        assert state.winner is not None
        rest = learn(
            model,
            data,
            one_start(state.winner),
            annealing=NoAnnealing(),
            max_iter=max_iter - state.spent,
            watch=offset_iterations(watch, state.spent),
            **settings,
        )
        return state._replace(fit=concatenate_history(state.fit, rest), spent=state.spent + rest.n_rounds, winner=None)

    def goes_on(state: Repair) -> bool:
        return state.winner is not None or (state.fit.converged and state.spent < max_iter and not state.given_up)

    def step(state: Repair) -> Repair:
        return attempt(state) if state.winner is None else finish(state)

    state = run_loop(Repair, partial(Repair, fit, fit.n_rounds), step, goes_on=goes_on, journal=journal)
    return state.fit._replace(n_rounds=state.spent)


def report_best(
    watch: Callable[[Progress], bool] | None, fit: FitResult, offset: int
) -> Callable[[Progress], bool] | None:
    """Return a watcher that reports the fit so far as long as none of its variants is better."""
    if watch is None:
        return None

    def shown(progress: Progress) -> Progress:
        progress = progress._replace(iteration=progress.iteration + offset)
        if not progress.bound[progress.best] > fit.bound:
            parameters, statistics = one_start(fit.parameters), one_start(fit.statistics)
            progress = Progress(progress.iteration, np.ones(1), np.array([fit.bound]), parameters, statistics)
        return progress

    return Watcher(watch, shown)


def _promising(
    model: Model, parameters: Parameters, recycled: int, lifted: bool, most: int = MOST_VARIANTS
) -> list[int]:
    """Return at most so many causes that may represent a mixture: those that explain most of the data.

    The cause to be recycled is included if all weights are to be raised.
    """
    activity = np.asarray(model.prior.activity(parameters.prior), dtype=float)
    energy = activity * np.sum(np.asarray(parameters.components, dtype=float) ** 2, axis=1)
    energy[recycled] = np.inf
    if not lifted:
        return sorted(np.argsort(energy)[-2::-1][:most].tolist())
    return sorted(np.argsort(energy)[::-1][:most].tolist())


class Tournament(NamedTuple):
    """State of a tournament between two rounds."""

    starts: Parameters  # the remaining variants
    number: int = 0  # index of the next round
    spent: int = 0  # iterations so far
    trials: StartResults | None = None  # results of the last round


def _tournament(
    model: Model,
    data: Data,
    variants: Callable[[], Parameters],
    *,
    to_beat: float,
    max_iter: int,
    tol: float,
    watch: Callable[[Progress], bool] | None,
    journal: Journal,
    **settings: Any,
) -> FitResult:
    """Run a few iterations from all variants, and more from the best while they may reach the bound ``to_beat``."""

    def play(state: Tournament) -> Tournament:
        """Run one round of the tournament."""
        iterations, survivors = ROUNDS[state.number]
        trials = learn_all(
            model,
            data,
            state.starts,
            annealing=NoAnnealing(),
            max_iter=max(1, min(iterations, max_iter - state.spent)),
            tol=max(tol, TRIAL_TOL),
            watch=offset_iterations(watch, state.spent),
            journal=journal,
            **settings,
        )
        spent, number = state.spent + trials.n_rounds, state.number + 1
        bounds = np.where(np.isfinite(trials.bound), trials.bound, -np.inf)
        best = np.argsort(bounds)[::-1][:survivors]
        rise = (bounds[best] - trials.bounds[0, best]) / trials.n_rounds
        best = best[bounds[best] + HORIZON * rise > to_beat]
        done = number == len(ROUNDS) or spent >= max_iter or (trials.outcome == Outcome.STOPPED).any()
        if done or len(best) == 0:
            return state._replace(number=len(ROUNDS), spent=spent, trials=trials)
        return Tournament(jax.tree.map(lambda leaf: leaf[best], trials.parameters), number, spent)

    end = run_loop(
        Tournament, lambda: Tournament(variants()), play, goes_on=lambda state: state.trials is None, journal=journal
    )
    assert end.trials is not None
    return best_of(end.trials, data)._replace(n_rounds=end.spent)


def least_missed(model: Model, data: Data, parameters: Parameters) -> list[int]:
    """Return the causes ordered by how much the bound falls without them, smallest fall first.

    Without cause h, the states in which it is active are missing, whose probability is q_n(s_h = 1) for row n, and the
    prior of the others is larger by 1/(1 − π_h). So the bound changes by Σ_n w_n log(1 − ⟨s_h⟩_n) − Σ_n w_n log(1 −
    π_h), and one pass over the data gives the changes of all causes.
    """
    *logs, weight = data.sum(partial(_log_remaining, model), parameters)
    activity = np.asarray(model.prior.activity(parameters.prior), dtype=float)
    change = np.array(logs) - weight * np.log1p(-np.minimum(activity, 1 - LEAST_REMAINING))
    return np.argsort(-change, kind="stable").tolist()


def _log_remaining(model: Model, block: Block, parameters: Parameters) -> np.ndarray:
    """Compute Σ_n w_n log(1 − ⟨s_h⟩_n) of every cause, and Σ_n w_n: (H + 1,)."""
    remaining = 1 - np.asarray(active_causes(model, block, parameters), dtype=float)
    weights = np.asarray(block.weights, dtype=float)
    return np.append(weights @ np.log(np.maximum(remaining, LEAST_REMAINING)), weights.sum())


def _all_variants(
    model: Model, data: Data, fit: FitResult, recycled: int, random: np.random.RandomState, *, lifted: bool
) -> Parameters:
    """Return the variants of a round; if causes are dead, they come back from residuals in some of them."""
    dead = dead_causes(fit.parameters, fit.statistics, data)
    if not dead.any():
        return _variants(model, fit.parameters, recycled, random, lifted=lifted)
    n_revivals = min(REVIVALS, len(dead) - 1)
    worst = worst_rows(model, data, fit.parameters)
    revived = [revive(model, data, fit.parameters, dead, worst, random) for _ in range(n_revivals)]
    most = min(len(dead), MOST_VARIANTS) - n_revivals
    others = _variants(model, fit.parameters, recycled, random, lifted=lifted, most=most)
    return jax.tree.map(lambda one, other: np.concatenate([one, other]), _stacked(revived), others)


def _variants(
    model: Model,
    parameters: Parameters,
    recycled: int,
    random: np.random.RandomState,
    *,
    lifted: bool,
    most: int = MOST_VARIANTS,
) -> Parameters:
    """Return one start for each promising cause, in which the recycled cause becomes a copy of it.

    If ``lifted``, one more start has all weights raised. It is the same whichever cause is recycled.
    """
    components: Any = parameters.components
    starts = []
    for source in _promising(model, parameters, recycled, lifted, most):
        factors = np.asarray(PERTURBATION * random.normal(size=components.shape[1]), dtype=components.dtype)
        moved = components.copy()
        if source == recycled and model.combination.bounds[0] >= 0:
            moved += LIFT * components.mean()
        else:
            moved[recycled] = components[source] * (1 + factors)
            moved[source] = components[source] * (1 - factors)
        moved = model.combination.reflect(moved)
        prior = model.prior.copied(parameters.prior, source, recycled)
        starts.append(parameters._replace(components=moved, prior=prior))
    return _stacked(starts)


def _stacked(variants: list[Parameters]) -> Parameters:
    """Stack parameters along a new axis of starts."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *variants)
