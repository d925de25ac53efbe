"""Second-order learning of causes without noise: TN10 eq. 10.35 by a preconditioned quasi-Newton method.

Changes of W are relative, W ← (1 + E) W, so that the gradient is that of the natural gradient rule, Γ = 1 + ⟨g′(v) vᵀ⟩.
For independent causes the Hessian couples E_ab with E_ba alone: H_ab = −⟨g″(v_a) v_b²⟩ on the diagonal and one beside
it. This approximation is the start of the L-BFGS recursion (P. Ablin, J.-F. Cardoso and A. Gramfort, Faster independent
component analysis by preconditioning with Hessian approximations, IEEE Trans. Signal Processing 66, 2018).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.engines.base import Blocks, Engine
from multicause.learning.convergence import Outcome
from multicause.learning.expectation_maximization import Fit, Progress
from multicause.learning.stochastic import evaluate
from multicause.learning.updates.natural_gradient import moved
from multicause.model import Model, Parameters, Statistics

# Steps that are remembered, smallest eigenvalue of the approximate Hessian, largest entry of a relative change (far
# from the maximum the approximation asks for steps that are much too long), and halvings of a step.
MEMORY = 7
SMALLEST_CURVATURE = 0.1
LONGEST = 0.5
HALVINGS = 10
# Roundings of F, or of the relative gradient, below which a step is neither a rise nor a fall.
ROUNDINGS = 16

_move = jax.jit(moved)


def learn_second_order(
    model: Model,
    engine: Engine,
    blocks: Blocks,
    start: Parameters,
    *,
    max_iter: int,
    tol: float,
    watch: Callable[[Progress], bool] | None = None,
) -> Fit:
    """Raise the likelihood until no entry of the mean relative gradient exceeds ``tol``."""

    def at(components: Any) -> tuple[Parameters, Statistics, float, np.ndarray, np.ndarray]:
        parameters = start._replace(components=components)
        sums = jax.device_get(engine.sum(partial(evaluate, model), blocks, parameters))
        slopes, squares = sums.components["slope_causes"], sums.components["curvature_squares"]
        gradient = np.eye(len(slopes)) + np.asarray(slopes, dtype=float) / float(sums.weight)
        return parameters, sums, float(sums.bound / sums.weight), gradient, -np.asarray(squares, float) / sums.weight

    parameters, sums, bound, gradient, curvature = at(jnp.asarray(start.components))
    epsilon = float(jnp.finfo(start.components.dtype).eps)
    history: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=MEMORY)
    bounds, outcome = [bound], Outcome.MAX_ITER
    if not np.isfinite(bound):
        outcome = Outcome.NON_FINITE
        max_iter = 0
    for iteration in range(max_iter):
        # Below this, rounding of the sums moves the gradient as much as learning does.
        if np.abs(gradient).max() < max(tol, ROUNDINGS * epsilon):
            outcome = Outcome.CONVERGED
            break
        found = None
        for step in (direction(gradient, curvature, history), gradient):
            if np.sum(step * gradient) <= 0:
                continue
            found = _search(at, parameters, bound, step, epsilon)
            if found is not None:
                break
            history.clear()
        if found is None:
            # No step along the gradient raises F any more, short of rounding.
            outcome = Outcome.CONVERGED
            break
        length, (parameters, sums, bound, new_gradient, curvature) = found
        history.append((length * step, gradient - new_gradient))
        gradient = new_gradient
        bounds.append(bound)
        progress = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], parameters)
        if watch is not None and watch(Progress(iteration, np.ones(1), np.array([bound]), progress)):
            outcome = Outcome.STOPPED
            break
    else:
        if np.abs(gradient).max() < tol:
            outcome = Outcome.CONVERGED
    n_iter = len(bounds) - 1
    return Fit(
        parameters=jax.device_get(parameters),
        bound=bound,
        bounds=np.array(bounds),
        temperatures=np.ones(n_iter + 1),
        n_iter=n_iter,
        n_rounds=n_iter,
        converged=outcome == Outcome.CONVERGED,
        outcome=outcome,
        statistics=sums,
    )


def direction(gradient: np.ndarray, curvature: np.ndarray, history: deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The L-BFGS direction of ascent, from relative changes and the falls of the gradient that came with them."""
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
    """Solve [[H_ab, 1], [1, H_ba]] (E_ab, E_ba) = (Γ_ab, Γ_ba) for all pairs, with eigenvalues raised to a floor."""
    mean, half = 0.5 * (curvature + curvature.T), 0.5 * (curvature - curvature.T)
    lift = np.maximum(SMALLEST_CURVATURE - (mean - np.sqrt(half**2 + 1)), 0)
    own, other = curvature + lift, curvature.T + lift
    return (other * gradient - gradient.T) / (own * other - 1)


def _search(at: Callable[[Any], Any], parameters: Parameters, bound: float, step: np.ndarray, epsilon: float) -> Any:
    """The first of ever shorter steps that does not lower F, and what is found there; None if there is none."""
    length = min(1.0, LONGEST / np.abs(step).max())
    components = jnp.asarray(parameters.components)
    for _ in range(HALVINGS):
        change = jnp.asarray(length * step, dtype=components.dtype)
        trial = at(_move(components, change))
        if np.isfinite(trial[2]) and trial[2] >= bound - ROUNDINGS * epsilon * abs(bound):
            return length, trial
        length /= 2
    return None
