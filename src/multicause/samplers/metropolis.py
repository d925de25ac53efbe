"""Random-walk Metropolis sampling."""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.samplers.base import (
    Info,
    MarkovChain,
    State,
    Target,
    is_finite,
    normal,
    probability,
    settle,
    split,
    uniform,
)


class Metropolis(MarkovChain):
    """Proposals N(z, ε²) around the present place; needs no gradient.

    Parameters
    ----------
    acceptance : float, default=0.5
        Part of proposals to accept, which the step size ε is adapted to.
    step_size : float, default=0.1
        First step size ε.
    """

    def __init__(self, *, acceptance: float = 0.5, step_size: float = 0.1) -> None:
        self.acceptance = acceptance
        self.step_size = step_size

    def init(self, position: Array, target: Target) -> State:
        """Without a gradient, which the compiler then leaves out."""
        return State(position, target(position)[0], jnp.zeros((len(position), 0), position.dtype))

    def kernel(self, key: Array, state: State, step_size: Array, target: Target) -> tuple[State, Info]:
        """One proposal for every chain."""
        for_step, for_choice = split(key)
        position = state.position + step_size * normal(for_step, state.position.shape, state.position.dtype)
        proposal = State(position, target(position)[0], state.gradient)
        finite = is_finite(proposal)
        acceptance = probability(state.energy - proposal.energy, finite)
        accept = uniform(for_choice, len(state.energy), state.energy.dtype) < acceptance
        return settle(state, proposal, accept), Info(acceptance, ~finite)
