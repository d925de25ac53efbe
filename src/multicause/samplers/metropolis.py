"""Random-walk Metropolis sampling."""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.samplers.base import (
    Chain,
    Draws,
    Info,
    MarkovChain,
    State,
    Target,
    chain_of_moves,
    is_finite,
    probability,
    settle,
)


class Metropolis(MarkovChain):
    """Random-walk Metropolis: proposals N(z, ε²) around the current position; needs no gradient.

    Parameters
    ----------
    acceptance : float, default=0.5
        Target acceptance rate, to which the step size ε is adapted.
    step_size : float, default=0.1
        Initial step size ε.
    """

    def __init__(self, *, acceptance: float = 0.5, step_size: float = 0.1) -> None:
        self.acceptance = acceptance
        self.step_size = step_size

    def build(self, target: Target, step_size: Array) -> Chain:
        """Return the chain that proposes one random step, and accepts or rejects it."""

        def init(position: Array) -> State:
            # Without a gradient, which the compiler then omits.
            return State(position, target(position)[0], jnp.zeros((len(position), 0), position.dtype))

        def move(draws: Draws, state: State) -> tuple[State, Info]:
            position = state.position + step_size * draws.normal
            proposal = State(position, target(position)[0], state.gradient)
            finite = is_finite(proposal)
            acceptance = probability(state.energy - proposal.energy, finite)
            return settle(state, proposal, draws.uniform < acceptance), Info(acceptance, ~finite)

        return chain_of_moves(init, move)
