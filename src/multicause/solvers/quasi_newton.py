"""Quasi-Newton learning of noiseless causes (ICA): TN10 eq. 10.35 by preconditioned L-BFGS.

Changes of W are relative, W ← (1 + E) W, so that the gradient is that of the natural gradient rule, Γ = 1 + ⟨g′(v) vᵀ⟩.
For independent causes the Hessian couples E_ab with E_ba alone: its entries are H_ab = −⟨g″(v_a) v_b²⟩ on the diagonal
and 1 off it. This approximation initializes the L-BFGS recursion (P. Ablin, J.-F. Cardoso and A. Gramfort, Faster
independent component analysis by preconditioning with Hessian approximations, IEEE Trans. Signal Processing 66, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.em.driver import Watch, run_loop
from multicause.em.results import FitResult, Progress, one_start, result_of_one, start_of
from multicause.em.solver import FitProblem, Solver
from multicause.engines.base import Data
from multicause.model import Model, Statistics
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.solvers.mini_batches import evaluate
from multicause.updates.natural_gradient import moved

# Number of past steps that L-BFGS keeps, smallest eigenvalue of the approximate Hessian, largest entry of a relative
# change (far from the maximum the approximation asks for steps that are much too long), and most halvings of a step in
# the line search.
MEMORY = 7
SMALLEST_CURVATURE = 0.1
LONGEST = 0.5
HALVINGS = 10
# Changes of F or of the relative gradient below this many machine epsilons count as rounding errors.
ROUNDINGS = 16

_move = jax.jit(moved)


Steps = tuple[tuple[np.ndarray, np.ndarray], ...]


@dataclass(frozen=True, kw_only=True)
class QuasiNewton(Solver):
    """Preconditioned L-BFGS until no entry of the mean relative gradient exceeds ``tol``."""

    # Each batch of a stream is one step of the natural gradient (TN10 eq. 10.37).
    averages_batches: bool = False

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn from the first start."""
        start = start_of(problem.starts)
        return learn_second_order(
            problem.model, problem.data, start, max_iter=self.max_iter, tol=self.tol, **problem.loop
        )


class QuasiNewtonState(NamedTuple):
    """State of the loop: the parameters, the bound and its derivatives there, and the recent steps."""

    parameters: Parameters
    sums: Statistics
    bound: float
    gradient: np.ndarray  # (H, H)
    curvature: np.ndarray  # (H, H)
    steps: Steps = ()  # relative changes and the decreases of the gradient that they caused; oldest first
    bounds: tuple[float, ...] = ()
    outcome: Outcome | None = None


def learn_second_order(
    model: Model,
    data: Data,
    start: Parameters,
    *,
    max_iter: int,
    tol: float,
    watch: Watch | None = None,
    journal: Journal | None = None,
) -> FitResult:
    """Maximize the likelihood until no entry of the mean relative gradient exceeds ``tol``."""
    epsilon = float(jnp.finfo(start.components.dtype).eps)

    def at(components: Any) -> QuasiNewtonState:
        parameters = start._replace(components=components)
        sums = jax.device_get(data.sum(partial(evaluate, model), parameters))
        slopes, squares = sums.components["slope_causes"], sums.components["curvature_squares"]
        gradient = np.eye(len(slopes)) + np.asarray(slopes, dtype=float) / float(sums.weight)
        bound, curvature = float(sums.bound / sums.weight), -np.asarray(squares, float) / sums.weight
        return QuasiNewtonState(parameters, sums, bound, gradient, curvature)

    def begin() -> QuasiNewtonState:
        first = at(jax.device_put(start.components))
        finite = np.isfinite(first.bound)
        return first._replace(bounds=(first.bound,), outcome=None if finite else Outcome.NON_FINITE)

    def step(state: QuasiNewtonState) -> QuasiNewtonState:
        # Below this, rounding errors of the sums change the gradient as much as learning does.
        if np.abs(state.gradient).max() < max(tol, ROUNDINGS * epsilon):
            return state._replace(outcome=Outcome.CONVERGED)
        steps = state.steps
        for change in (direction(state.gradient, state.curvature, steps), state.gradient):
            if np.sum(change * state.gradient) <= 0:
                continue
            line_search = _search(at, state, change, epsilon)
            if line_search is not None:
                length, after = line_search
                steps = (*steps, (length * change, state.gradient - after.gradient))[-MEMORY:]
                return after._replace(steps=steps, bounds=(*state.bounds, after.bound))
            steps = ()
        # No step along the gradient raises F by more than rounding errors.
        return state._replace(outcome=Outcome.CONVERGED)

    def report(before: QuasiNewtonState, after: QuasiNewtonState) -> Iterator[Progress]:
        if after.outcome is None:
            now = (one_start(after.parameters), one_start(after.sums))
            yield Progress(len(after.bounds) - 2, np.ones(1), np.array([after.bound]), *now)

    state = run_loop(
        QuasiNewtonState,
        begin,
        step,
        goes_on=lambda state: state.outcome is None and len(state.bounds) <= max_iter,
        report=report,
        watch=watch,
        journal=journal,
    )
    outcome = state.outcome
    if outcome is None and np.abs(state.gradient).max() < tol:
        outcome = Outcome.CONVERGED
    return result_of_one(state.parameters, state.sums, state.bounds, outcome)


def direction(gradient: np.ndarray, curvature: np.ndarray, history: Steps) -> np.ndarray:
    """Compute the L-BFGS ascent direction from past relative changes and decreases of the gradient."""
    rest, weights = gradient.copy(), []
    for step, fall in reversed(history):
        rho = 1 / np.sum(step * fall)
        weight = rho * np.sum(step * rest)
        weights.append((rho, weight))
        rest = rest - weight * fall
    rest = precondition(rest, curvature)
    for (step, fall), (rho, weight) in zip(history, reversed(weights), strict=True):
        rest = rest + (weight - rho * np.sum(fall * rest)) * step
    return rest


def precondition(gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Solve [[H_ab, 1], [1, H_ba]] (E_ab, E_ba) = (Γ_ab, Γ_ba) for all pairs, with eigenvalues of at least a floor."""
    mean, half = 0.5 * (curvature + curvature.T), 0.5 * (curvature - curvature.T)
    lift = np.maximum(SMALLEST_CURVATURE - (mean - np.sqrt(half**2 + 1)), 0)
    own, other = curvature + lift, curvature.T + lift
    return (other * gradient - gradient.T) / (own * other - 1)


def _search(
    at: Callable[[Any], QuasiNewtonState], state: QuasiNewtonState, step: np.ndarray, epsilon: float
) -> tuple[float, QuasiNewtonState] | None:
    """Halve the step until it does not lower F; return its length and the state there, or None if all steps fail."""
    length = min(1.0, LONGEST / np.abs(step).max())
    components, bound = jnp.asarray(state.parameters.components), state.bound
    for _ in range(HALVINGS):
        change = jnp.asarray(length * step, dtype=components.dtype)
        moved = at(_move(components, change))
        if np.isfinite(moved.bound) and moved.bound >= bound - ROUNDINGS * epsilon * abs(bound):
            return length, moved
        length /= 2
    return None
