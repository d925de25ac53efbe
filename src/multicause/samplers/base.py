"""The interface of samplers: where the model's side of learning, ⟨∂E/∂θ⟩ under the model, comes from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.parts import Part

# E and ∂E/∂z of rows (n, R): (n,) and (n, R).
Target = Callable[[Array], tuple[Array, Array]]
# What a run in which everything was accepted adds to the logarithm of the step size.
GAIN = 0.05


class State(NamedTuple):
    """What the next step of n chains needs."""

    position: Array  # (n, R)
    energy: Array  # (n,)
    gradient: Array  # (n, R), or (n, 0) for a sampler that does not need it


class Info(NamedTuple):
    """What a person wants to know about a step."""

    acceptance: Array  # (n,) probability with which the proposal is, or for Langevin would be, accepted
    non_finite: Array  # (n,) whether the proposal had no finite energy and was rejected for that


class Sampler(Part):
    """A way to get the model's side of learning; one that is not a Markov chain needs a model that allows it."""


class MarkovChain(Sampler):
    """Many chains side by side. All leave exp(−E)/Z invariant, but for Langevin without rejection.

    ``key`` is one key for all chains, or one for each: then a chain's path depends on nothing but its own key.
    """

    acceptance: float
    step_size: float

    def validate(self) -> None:
        """Step size and acceptance are possible numbers."""
        if not isinstance(self.acceptance, Real) or not 0 < self.acceptance < 1:
            raise ValueError(f"acceptance of {type(self).__name__} must lie between 0 and 1; got {self.acceptance!r}.")
        if not isinstance(self.step_size, Real) or not 0 < self.step_size < float("inf"):
            raise ValueError(f"step_size of {type(self).__name__} must be a positive number; got {self.step_size!r}.")

    def init(self, position: Array, target: Target) -> State:
        """The state of chains that start at given rows."""
        return State(position, *target(position))

    @abstractmethod
    def kernel(self, key: Array, state: State, step_size: Array, target: Target) -> tuple[State, Info]:
        """One step of every chain."""

    def adapted(self, step_size: Array, acceptance: Array) -> Array:
        """A step size that is larger where more was accepted than ``self.acceptance``, and smaller otherwise."""
        excess = (acceptance - self.acceptance) / (1 - self.acceptance)
        return step_size * jnp.exp(GAIN * excess).astype(step_size.dtype)

    def has_settled(self, acceptance: float) -> bool:
        """Whether a mean acceptance is so near to ``self.acceptance`` that the step size has found its place."""
        return self.acceptance / 2 < acceptance < (1 + self.acceptance) / 2


def run_chain(
    sampler: MarkovChain, key: Array, start: State, step_size: Array, target: Target, n_steps: int
) -> tuple[State, Array, Array]:
    """Run chains for some steps from a state that ``sampler.init`` returned.

    Returns their last state, the mean acceptance and the number of rejected proposals without a finite energy.
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
    """The proposal where it was accepted, the old state elsewhere."""
    return State(
        jnp.where(accept[:, None], proposal.position, state.position),
        jnp.where(accept, proposal.energy, state.energy),
        jnp.where(accept[:, None], proposal.gradient, state.gradient),
    )


def is_finite(proposal: State) -> Array:
    """Chains whose energy, and gradient where there is one, is finite: (n,)."""
    return jnp.isfinite(proposal.energy) & jnp.isfinite(proposal.gradient).all(axis=1)


def probability(log_ratio: Array, finite: Array) -> Array:
    """min(1, e^ratio); zero where the proposal is not finite.

    A chain at a place whose energy is not a number has no ratio, and leaves it for any place that has an energy.
    """
    return jnp.where(finite, jnp.exp(jnp.minimum(jnp.where(finite & ~jnp.isnan(log_ratio), log_ratio, 0), 0)), 0)


def normal(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Gaussian numbers (n, R) from one key for all chains or from one key each.

    They are drawn in single precision, three times as fast as in double precision: a rounding of steps at random does
    not matter, because what is accepted is decided by the steps that were taken.
    """
    if key.ndim:
        return jax.vmap(lambda own: jax.random.normal(own, shape[1:], jnp.float32))(key).astype(dtype)
    return jax.random.normal(key, shape, jnp.float32).astype(dtype)


def uniform(key: Array, n: int, dtype: Any) -> Array:
    """Numbers (n,) in [0, 1) from one key for all chains or from one key each."""
    if key.ndim:
        return jax.vmap(lambda own: jax.random.uniform(own, (), dtype))(key)
    return jax.random.uniform(key, (n,), dtype)


def split(key: Array) -> tuple[Array, Array]:
    """Two keys from one, or two for each chain."""
    if key.ndim:
        both = jax.vmap(jax.random.split)(key)
        return both[:, 0], both[:, 1]
    first, second = jax.random.split(key)
    return first, second


def folded(key: Array, number: Array) -> Array:
    """A key, or one for each chain, that belongs to a number."""
    if key.ndim:
        return jax.vmap(jax.random.fold_in, (0, None))(key, number)
    return jax.random.fold_in(key, number)


def is_count(value: Any) -> bool:
    """Whether a hyper-parameter is a positive whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
