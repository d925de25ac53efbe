"""Interface of samplers, which provide the model's expectation ⟨∂E/∂θ⟩ in the gradient of the likelihood.

A Markov chain has the shape of blackjax: ``init(position)`` returns a *State*, which the next step needs, and
``kernel(key, state)`` returns the next State and an *Info*, the diagnostics of the step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.parts import Part

# Energy E and gradient ∂E/∂z of rows (n, R): (n,) and (n, R). An attribute ``gradient_of_columns``, if there is one and
# it is not None, is a function that computes the gradient of columns (R, n) in less time: (R, n).
Target = Callable[[Array], tuple[Array, Array]]
# Increase of the log step size after a run in which all proposals were accepted.
GAIN = 0.05


class State(NamedTuple):
    """State of n chains that the next step needs.

    Chains may have states of other classes, as long as these have a ``position``. With an ``energy``, the contrast of
    an update needs no further evaluation of energies.
    """

    position: Array  # (n, R)
    energy: Array  # (n,)
    gradient: Array  # (n, R), or (n, 0) for a sampler that does not need it


class Info(NamedTuple):
    """Diagnostics of one step of n chains. Chains may return other classes that have an ``acceptance_rate``."""

    acceptance_rate: Array  # (n,) acceptance probability of the proposal; for Langevin, of a corrected chain
    non_finite: Array  # (n,) whether the proposal was rejected because its energy was not finite


class Draws(NamedTuple):
    """Random numbers of one step of n chains."""

    normal: Array  # (n, R)
    uniform: Array  # (n,) in [0, 1)


class Chain(NamedTuple):
    """Markov chain of a sampler for one target and one step size; n chains run in parallel."""

    init: Callable[[Array], Any]  # positions (n, R) to a State
    kernel: Callable[[Array, Any], tuple[Any, Any]]  # key and State to the next State and an Info
    #: The kernel with random numbers in place of a key, if :func:`draw_step` provides all of them.
    move: Callable[[Draws, Any], tuple[Any, Any]] | None = None


class ModelExpectation(Enum):
    """Ways to compute the model's expectation in the gradient."""

    CHAINS = "Markov chains"
    DRAWS = "independent samples of the model"
    GRADIENT = "the gradient of log Z"


class Sampler(Part):
    """Base class of samplers. Those that are not Markov chains need a model whose partition function is known."""

    #: How this sampler provides the model's expectation.
    expectation: ModelExpectation
    #: Methods of the expert that it needs, in a model whose partition function is known.
    needs_of_expert: tuple[str, ...] = ()
    #: Initial step size, in units of the whitened data.
    step_size: float = 0.0

    def adapted(self, step_size: Array, acceptance: Array) -> Array:
        """Return the step size of the next update, given the acceptance rate of this one."""
        return step_size

    def has_settled(self, acceptance: float) -> bool:
        """Return whether a mean acceptance rate is that of a sampler that has found its step size."""
        return True


class MarkovChain(Sampler):
    """Base class of Markov chains, many of which run in parallel.

    All leave exp(−E)/Z invariant, except Langevin dynamics without rejection. The ``key`` of a kernel is one key for
    all chains, or one for each chain, in which case a chain's path depends on its own key alone.
    """

    expectation = ModelExpectation.CHAINS
    acceptance: float = 0.5
    step_size: float = 0.1

    def validate(self) -> None:
        """Raise ValueError if the step size or the acceptance rate is invalid."""
        if not isinstance(self.acceptance, Real) or not 0 < self.acceptance < 1:
            raise ValueError(f"acceptance of {type(self).__name__} must lie between 0 and 1; got {self.acceptance!r}.")
        if not isinstance(self.step_size, Real) or not 0 < self.step_size < float("inf"):
            raise ValueError(f"step_size of {type(self).__name__} must be a positive number; got {self.step_size!r}.")

    @abstractmethod
    def build(self, target: Target, step_size: Array) -> Chain:
        """Return the functions ``init`` and ``kernel`` of the chain for a target and a step size."""

    def adapted(self, step_size: Array, acceptance: Array) -> Array:
        """Return the adapted step size: larger if the acceptance rate exceeds ``self.acceptance``, else smaller."""
        excess = (acceptance - self.acceptance) / (1 - self.acceptance)
        return step_size * jnp.exp(GAIN * excess).astype(step_size.dtype)

    def has_settled(self, acceptance: float) -> bool:
        """Return whether a mean acceptance rate is close enough to ``self.acceptance`` for a well-adapted step size."""
        return self.acceptance / 2 < acceptance < (1 + self.acceptance) / 2


def chain_of_moves(init: Callable[[Array], Any], move: Callable[[Draws, Any], tuple[Any, Any]]) -> Chain:
    """Return the chain whose kernel draws the random numbers of a move."""

    def kernel(key: Array, state: Any) -> tuple[Any, Any]:
        return move(draw_step(key, state.position.shape, state.position.dtype), state)

    return Chain(init, kernel, move)


def draw_step(key: Array, shape: tuple[int, ...], dtype: Any) -> Draws:
    """Draw the random numbers of one step of chains at positions of some shape (n, R)."""
    for_normal, for_uniform = split(key)
    return Draws(normal(for_normal, shape, dtype), uniform(for_uniform, shape[0], dtype))


def draw_steps(keys: Array, shape: tuple[int, ...], dtype: Any) -> Draws:
    """Draw the numbers of runs of one step, one run for each key, that :func:`run_chain` would draw itself."""
    return jax.vmap(lambda key: draw_step(folded(key, jnp.zeros((), int)), shape, dtype))(keys)


def run_chain(
    chain: Chain, key: Array, start: Any, n_steps: int, draws: Draws | None = None
) -> tuple[Any, Array, Array]:
    """Run chains for some steps from a state of ``chain.init``; with ``draws``, for one step with these numbers.

    Returns their last state, the mean acceptance rate, and the number of proposals rejected for a non-finite energy.
    """
    dtype = start.position.dtype

    def step(number: Array, carry: Any) -> Any:
        state, acceptance, bad = carry
        if draws is not None and chain.move is not None:
            state, info = chain.move(draws, state)
        else:
            state, info = chain.kernel(folded(key, number), state)
        bad = bad + jnp.sum(info.non_finite) if hasattr(info, "non_finite") else bad
        return state, acceptance + jnp.mean(info.acceptance_rate).astype(dtype), bad

    first = (start, jnp.zeros((), dtype), jnp.zeros((), int))
    if n_steps == 1:
        state, acceptance, bad = step(jnp.zeros((), int), first)
    else:
        state, acceptance, bad = jax.lax.fori_loop(0, n_steps, step, first)
    return state, acceptance / n_steps, bad


def initial_state(target: Target, position: Array) -> State:
    """Return the state of chains that start at the given rows, with energies and gradients."""
    return State(position, *target(position))


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
