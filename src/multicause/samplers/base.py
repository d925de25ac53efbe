"""Interface of samplers, which provide the model expectation ⟨∂E/∂θ⟩ of the likelihood gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.parts import Part

# Energy E and gradient ∂E/∂z of rows (n, R): (n,) and (n, R).
Target = Callable[[Array], tuple[Array, Array]]
# Increase of the log step size after a run in which all proposals were accepted.
GAIN = 0.05


class State(NamedTuple):
    """State of n chains that the next step needs."""

    position: Array  # (n, R)
    energy: Array  # (n,)
    gradient: Array  # (n, R), or (n, 0) for a sampler that does not need it


class Info(NamedTuple):
    """Diagnostics of one step of n chains."""

    acceptance: Array  # (n,) acceptance probability of the proposal; for Langevin, of a corrected chain
    non_finite: Array  # (n,) whether the proposal was rejected because its energy was not finite


class Sampler(Part):
    """Base class of samplers. Those that are not Markov chains need a model whose partition function is known."""


class MarkovChain(Sampler):
    """Base class of Markov chains, many of which run in parallel.

    All leave exp(−E)/Z invariant, except Langevin dynamics without rejection. ``key`` is one key for all chains, or one
    for each chain, in which case a chain's path depends on its own key alone.
    """

    acceptance: float
    step_size: float

    def validate(self) -> None:
        """Raise ValueError if the step size or the acceptance rate is invalid."""
        if not isinstance(self.acceptance, Real) or not 0 < self.acceptance < 1:
            raise ValueError(f"acceptance of {type(self).__name__} must lie between 0 and 1; got {self.acceptance!r}.")
        if not isinstance(self.step_size, Real) or not 0 < self.step_size < float("inf"):
            raise ValueError(f"step_size of {type(self).__name__} must be a positive number; got {self.step_size!r}.")

    def init(self, position: Array, target: Target) -> State:
        """Return the state of chains that start at the given rows."""
        return State(position, *target(position))

    @abstractmethod
    def kernel(self, key: Array, state: State, step_size: Array, target: Target) -> tuple[State, Info]:
        """Run one step of every chain."""

    def adapted(self, step_size: Array, acceptance: Array) -> Array:
        """Return the adapted step size: larger if the acceptance rate exceeds ``self.acceptance``, else smaller."""
        excess = (acceptance - self.acceptance) / (1 - self.acceptance)
        return step_size * jnp.exp(GAIN * excess).astype(step_size.dtype)

    def has_settled(self, acceptance: float) -> bool:
        """Return whether a mean acceptance rate is close enough to ``self.acceptance`` for a well-adapted step size."""
        return self.acceptance / 2 < acceptance < (1 + self.acceptance) / 2


def run_chain(
    sampler: MarkovChain, key: Array, start: State, step_size: Array, target: Target, n_steps: int
) -> tuple[State, Array, Array]:
    """Run chains for ``n_steps`` steps from a state that ``sampler.init`` returned.

    Returns their last state, the mean acceptance rate, and the number of proposals rejected for a non-finite energy.
    """

    def step(number: Array, carry: Any) -> Any:
        state, acceptance, bad = carry
        state, info = sampler.kernel(folded(key, number), state, step_size, target)
        return state, acceptance + jnp.mean(info.acceptance), bad + jnp.sum(info.non_finite)

    first = (start, jnp.zeros((), start.position.dtype), jnp.zeros((), int))
    if n_steps == 1:
        state, acceptance, bad = step(jnp.zeros((), int), first)
    else:
        state, acceptance, bad = jax.lax.fori_loop(0, n_steps, step, first)
    return state, acceptance / n_steps, bad


def settle(state: State, proposal: State, accept: Array) -> State:
    """Return the proposal where it was accepted, and the old state elsewhere."""
    return State(
        jnp.where(accept[:, None], proposal.position, state.position),
        jnp.where(accept, proposal.energy, state.energy),
        jnp.where(accept[:, None], proposal.gradient, state.gradient),
    )


def is_finite(proposal: State) -> Array:
    """Return which chains have a finite energy and, if there is one, a finite gradient: (n,)."""
    return jnp.isfinite(proposal.energy) & jnp.isfinite(proposal.gradient).all(axis=1)


def probability(log_ratio: Array, finite: Array) -> Array:
    """Return the acceptance probability min(1, e^ratio), zero where the proposal is not finite.

    A chain at a position whose energy is NaN has no ratio; it accepts any proposal with a finite energy.
    """
    return jnp.where(finite, jnp.exp(jnp.minimum(jnp.where(finite & ~jnp.isnan(log_ratio), log_ratio, 0), 0)), 0)


def normal(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draw standard normal numbers (n, R) from one key for all chains or from one key for each.

    They are drawn in single precision, three times as fast as in double precision. Rounding of the random steps does
    not matter, because the acceptance probability is computed from the steps actually taken.
    """
    if key.ndim:
        return jax.vmap(lambda own: jax.random.normal(own, shape[1:], jnp.float32))(key).astype(dtype)
    return jax.random.normal(key, shape, jnp.float32).astype(dtype)


def uniform(key: Array, n: int, dtype: Any) -> Array:
    """Draw uniform numbers (n,) in [0, 1) from one key for all chains or from one key for each."""
    if key.ndim:
        return jax.vmap(lambda own: jax.random.uniform(own, (), dtype))(key)
    return jax.random.uniform(key, (n,), dtype)


def split(key: Array) -> tuple[Array, Array]:
    """Split a key into two, or each chain's key into two."""
    if key.ndim:
        both = jax.vmap(jax.random.split)(key)
        return both[:, 0], both[:, 1]
    first, second = jax.random.split(key)
    return first, second


def folded(key: Array, number: Array) -> Array:
    """Fold a number into a key, or into each chain's key."""
    if key.ndim:
        return jax.vmap(jax.random.fold_in, (0, None))(key, number)
    return jax.random.fold_in(key, number)


def is_count(value: Any) -> bool:
    """Return whether a hyper-parameter is a positive integer."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
