"""Hamiltonian (hybrid) Monte Carlo."""

from __future__ import annotations

from functools import partial

import jax
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
    initial_state,
    is_count,
    is_finite,
    probability,
    settle,
)


class Hamiltonian(MarkovChain):
    """Hamiltonian Monte Carlo: leapfrog steps of H = E + ½‖k‖² from a random momentum k, then accept or reject.

    Parameters
    ----------
    n_leapfrog : int, default=20
        Number of leapfrog steps L in one step of the chain.
    acceptance : float, default=0.9
        Target acceptance rate, to which the step size ε is adapted.
    step_size : float, default=0.1
        Initial step size ε.
    """

    def __init__(self, n_leapfrog: int = 20, *, acceptance: float = 0.9, step_size: float = 0.1) -> None:
        self.n_leapfrog = n_leapfrog
        self.acceptance = acceptance
        self.step_size = step_size

    def validate(self) -> None:
        """Raise ValueError if a hyper-parameter is invalid."""
        super().validate()
        if not is_count(self.n_leapfrog):
            raise ValueError(f"n_leapfrog must be a positive whole number; got {self.n_leapfrog!r}.")

    def build(self, target: Target, step_size: Array) -> Chain:
        """Return the chain that runs one trajectory in each step."""
        return trajectories(target, step_size, self.n_leapfrog, corrected=True)


def trajectories(target: Target, step_size: Array, n_leapfrog: int, *, corrected: bool) -> Chain:
    """Return the chain of trajectories of leapfrog steps; if not ``corrected``, every finite proposal is accepted."""

    def move(draws: Draws, state: State) -> tuple[State, Info]:
        proposal, momentum = leapfrog(state, draws.normal, step_size, target, n_leapfrog)
        finite = is_finite(proposal)
        before, after = state.energy + kinetic(draws.normal), proposal.energy + kinetic(momentum)
        acceptance = probability(before - after, finite)
        accept = draws.uniform < acceptance if corrected else finite
        return settle(state, proposal, accept), Info(acceptance, ~finite)

    return chain_of_moves(partial(initial_state, target), move)


def leapfrog(state: State, momentum: Array, step_size: Array, target: Target, n_steps: int) -> tuple[State, Array]:
    """Return the states and momenta after some leapfrog steps, which preserve volume and are reversible."""
    of_columns = getattr(target, "gradient_of_columns", None)

    def step(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        position, momentum = carry
        position = position + step_size * momentum
        gradient = target(position)[1] if of_columns is None else of_columns(position)
        return position, momentum - step_size * gradient

    def turned(both: tuple[Array, Array]) -> tuple[Array, Array]:
        return both if of_columns is None else (both[0].T, both[1].T)

    momentum = momentum - step_size / 2 * state.gradient
    position, momentum = turned(jax.lax.fori_loop(0, n_steps - 1, step, turned((state.position, momentum))))
    position = position + step_size * momentum
    energy, gradient = target(position)
    return State(position, energy, gradient), momentum - step_size / 2 * gradient


def kinetic(momentum: Array) -> Array:
    """Compute the kinetic energy ½‖k‖² of each chain."""
    return jnp.sum(momentum**2, axis=1) / 2
