"""The loop of contrastive divergence: rounds of updates, and how they ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from multicause.em.driver import Watch, run_loop
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.solvers.contrastive_divergence import (
    EnergyBatches,
    Method,
    Rates,
    RoundReport,
    UpdateState,
    learn_round,
)

# Number of rounds of a fit, after each of which callbacks run, and the largest number of updates in one round.
ROUNDS = 100
LONGEST_ROUND = 100
# Largest memory of the mini-batches of one round.
ROUND_BYTES = 64 * 2**20
# Convergence is decided by the drift of the filters over the last part of all learning, measured by the sum of the
# learning rates. With rates that fall to nearly zero this part is the second half of the updates; in the last tenth of
# the updates filters hardly move, wherever they are.
END = 0.25
# Fraction of the rounds, at the end, over which the acceptance rate is averaged.
LAST_ROUNDS = 0.1


class RoundProgress(NamedTuple):
    """Progress of learning after a round, as passed to ``watch``."""

    iteration: int  # rounds so far, counted from zero
    n_updates: int
    updates: UpdateState
    reports: np.ndarray  # (rounds, 4) reports of all rounds so far

    @property
    def report(self) -> RoundReport:
        """Return the report of the last round."""
        return RoundReport(*self.reports[-1])


class ContrastiveDivergenceState(NamedTuple):
    """State of the loop after some rounds."""

    updates: UpdateState
    before_end: Any  # (H, R) filters at the beginning of the last part of all updates
    reports: np.ndarray  # (rounds, 4)
    n_updates: int = 0
    outcome: Outcome | None = None


class EnergyFitResult(NamedTuple):
    """Result of learning an energy-based model."""

    updates: UpdateState  # as NumPy arrays
    reports: RoundReport  # (rounds,) each
    drift: float  # how far the filters moved in the last part, relative to their norm
    outcome: Outcome


def round_length(max_iter: int, batch_bytes: int) -> int:
    """Return the number of updates in one round."""
    wanted = min(LONGEST_ROUND, -(-max_iter // ROUNDS))
    return max(1, min(wanted, ROUND_BYTES // max(batch_bytes, 1)))


def learn(
    method: Method,
    updates: UpdateState,
    draw: Callable[[int], EnergyBatches],
    whitening: tuple[np.ndarray, np.ndarray],
    rates: Rates,
    *,
    n_updates: int,
    length: int,
    tol: float,
    seed: np.ndarray,
    end: float = END,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> EnergyFitResult:
    """Run ``n_updates`` updates in rounds of ``length``; ``draw(n)`` returns the mini-batches of a round.

    The drift is that of the filters in the last part of all learning, ``end``; with one, since the first update.
    """

    def step(state: ContrastiveDivergenceState) -> ContrastiveDivergenceState:
        n = min(length, n_updates - state.n_updates)
        updates, report = learn_round(method, state.updates, draw(length), whitening, rates, np.asarray(n), seed)
        learned_before = state.reports[-1, -1] if len(state.reports) else 0.0
        before_end = updates.parameters.filters if learned_before < 1 - end else state.before_end
        reported, finite = jax.device_get((report, updates.finite))
        reports = np.vstack([state.reports, np.array(reported, dtype=float)])
        outcome = None if finite else Outcome.NON_FINITE
        return ContrastiveDivergenceState(updates, before_end, reports, state.n_updates + n, outcome)

    def report(before: ContrastiveDivergenceState, after: ContrastiveDivergenceState) -> Iterator[RoundProgress]:
        if after.outcome is None:
            yield RoundProgress(len(after.reports) - 1, after.n_updates, after.updates, after.reports)

    state = run_loop(
        ContrastiveDivergenceState,
        lambda: ContrastiveDivergenceState(
            updates, updates.parameters.filters, np.empty((0, len(RoundReport._fields)))
        ),
        step,
        goes_on=lambda state: state.outcome is None and state.n_updates < n_updates,
        report=report,
        watch=watch,
        journal=journal,
    )
    reports = RoundReport(*state.reports.T)
    drift = _drift(np.asarray(state.updates.parameters.filters), np.asarray(state.before_end))
    outcome = state.outcome or _outcome(method, drift, reports.acceptance, tol)
    return EnergyFitResult(jax.device_get(state.updates), reports, drift, outcome)


def _drift(filters: np.ndarray, before: np.ndarray) -> float:
    """Return the distance between filters, relative to their norm."""
    filters, before = filters.astype(float), before.astype(float)
    # Filters that have diverged would overflow when squared.
    scale = max(float(np.abs(filters).max()), np.finfo(float).tiny)
    size = max(float(np.linalg.norm(filters / scale)), np.finfo(float).tiny)
    return float(np.linalg.norm(filters / scale - before / scale)) / size


def _outcome(method: Method, drift: float, acceptances: np.ndarray, tol: float) -> Outcome:
    """Return whether learning has converged.

    Chains that accept nothing, or that hardly move and accept everything, have no contrast; the filters then stop
    moving although nothing has converged.
    """
    last = acceptances[int((1 - LAST_ROUNDS) * len(acceptances)) :].mean()
    return Outcome.CONVERGED if drift < tol and method.sampler.has_settled(last) else Outcome.MAX_ITER
