"""Evolved states as a posterior: the states of each row are kept between iterations and bred by their log joint.

E. Guiraud, J. Drefs and J. Lücke, Evolutionary Expectation Maximization, GECCO (2018) 442–449; J. Drefs, E. Guiraud and
J. Lücke, Evolutionary Variational Optimization of Generative Models, JMLR 23 (2022) 21:1–51.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Support
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, Inference, Posterior
from multicause.posteriors.breeding import children_of, is_first
from multicause.posteriors.row_states import RowStates, bytes_of_row, log_prior_of, scores_of

if TYPE_CHECKING:
    from multicause.model import Block, Model, Parameters

# Number of causes from which on there are more states than any population has.
MOST_DIGITS = 40


class Evolved(Posterior):
    """Posterior over states that each row has of its own, which are bred from iteration to iteration.

    In every iteration, children of a row's states arise by mutation (a cause changes, or two change places) and
    crossover (causes of one parent or the other), and the ``population`` states with the largest log p(s, y) survive.
    A state is only lost to better ones, so that the bound never falls at fixed parameters. Nothing but the log joint
    is needed, so that every combination and noise can be used, and rows may have any number of active causes. With as
    many states as there are, the posterior is exact.

    States are kept for the rows that ``fit`` learns from. New rows, as in ``transform``, ``score`` and ``partial_fit``,
    begin with the best states of single causes and are bred ``n_generations`` times, always in the same way.

    Parameters
    ----------
    population : int, default=64
        Number S of states of a row.
    n_children : int, default=32
        Number of children in one generation.
    n_generations : int, default=20
        Number of generations of rows without states of earlier iterations; afterwards, one in every iteration.
    """

    monotone = True
    remembers = True
    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.LEVELS}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
    )
    offers = EXPECTATIONS_OF_STATES | {Expectation.LEVELS}

    def __init__(self, population: int = 64, *, n_children: int = 32, n_generations: int = 20) -> None:
        self.population = population
        self.n_children = n_children
        self.n_generations = n_generations

    def validate(self) -> None:
        """Raise ValueError unless all numbers are positive integers."""
        for name in ("population", "n_children", "n_generations"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} of Evolved must be a whole number of at least 1; got {value!r}.")

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def bind(self, model: Model, n_components: int, n_features: int, n_rows: int) -> Evolved:
        """Return this posterior with at most as many states as there are."""
        most = (1 + len(model.prior.strengths)) ** min(n_components, MOST_DIGITS)
        numbers = {"n_children": self.n_children, "n_generations": self.n_generations}
        return Evolved(min(int(self.population), most), **numbers)

    def n_states(self, n_components: int) -> int:
        """Return the number of states of a row."""
        return int(self.population)

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: states, children or single causes, and a mean for each."""
        n_states = max(int(self.population) + int(self.n_children), n_components + 1)
        comparisons = int(self.n_children) * (int(self.population) + int(self.n_children))
        return bytes_of_row(n_states, n_components, n_features, itemsize) + comparisons

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of sums over rows."""
        return itemsize * 6 * n_components * (n_components + n_features)

    def first_memory(self, model: Model, parameters: Parameters, block: Block, key: Array) -> dict[str, Array]:
        """Return states of rows that have none yet: the empty one and the best single causes, bred further.

        ``"states"`` (n, S, H) has numbers of levels, zero for causes that are off, and ``"key"`` is a random key.
        """
        H, strengths, size = len(parameters.components), model.prior.strengths, int(self.population)
        n, levels = len(block.rows), 1 + len(strengths)
        if levels ** min(H, MOST_DIGITS) <= size:
            every = jnp.asarray(np.arange(levels**H)[:, None] // levels ** np.arange(H) % levels, jnp.int8)
            return {"states": jnp.broadcast_to(every, (n, *every.shape)), "key": key}
        singles = [np.zeros((1, H)), *((k + 1) * np.eye(H) for k in range(len(strengths)))]
        states = jnp.asarray(np.concatenate(singles), jnp.int8)
        # Empty states, which are not counted, fill up a population that is larger than the number of single causes.
        filling = jnp.zeros((max(0, size - len(states)), H), jnp.int8)
        states = jnp.broadcast_to(jnp.concatenate([states, filling]), (n, len(states) + len(filling), H))
        states = self._survivors(states, self._log_joint(model, parameters, block.rows, states))[0]
        memory = {"states": states, "key": key}
        return jax.lax.fori_loop(
            0, int(self.n_generations), lambda _, last: self.breed(model, parameters, block, last), memory
        )

    def breed(self, model: Model, parameters: Parameters, block: Block, memory: dict[str, Array]) -> dict[str, Array]:
        """Return the states of the next generation, best first."""
        states, n_levels = memory["states"], 1 + len(model.prior.strengths)
        if n_levels ** min(states.shape[-1], MOST_DIGITS) <= int(self.population):
            return memory
        key, now = jax.random.split(memory["key"])
        children = children_of(now, states, int(self.n_children), n_levels)
        both = jnp.concatenate([states, children], axis=1)
        log_joint = self._log_joint(model, parameters, block.rows, both)
        return {"states": self._survivors(both, log_joint)[0], "key": key}

    def _survivors(self, states: Array, log_joint: Array) -> tuple[Array, Array]:
        """Return the best states of each row, best first, and their log joints."""
        best, places = jax.lax.top_k(log_joint, int(self.population))
        return jnp.take_along_axis(states, places[..., None], axis=1), best

    @staticmethod
    def _log_joint(model: Model, parameters: Parameters, rows: Array, states: Array) -> Array:
        """Return log p(s, y) of states up to a constant of each row; −∞ for those that are equal to an earlier one."""
        values = _values_of(model, states, rows.dtype)
        log_joint = scores_of(model, parameters, rows, values)[0] + log_prior_of(model, parameters, values)
        return jnp.where(is_first(states), log_joint, -jnp.inf)

    def infer_from_memory(
        self, model: Model, parameters: Parameters, block: Block, temperature: Array, memory: dict[str, Array]
    ) -> Inference:
        """Return expectations over the states that were kept."""
        states = memory["states"]
        values = _values_of(model, states, block.rows.dtype)
        return RowStates(model, parameters, block, temperature, values, is_first(states))

    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Breed states of new rows, and return expectations over them."""
        memory = self.first_memory(model, parameters, block, jax.random.PRNGKey(0))
        return self.infer_from_memory(model, parameters, block, temperature, memory)


def _values_of(model: Model, states: Array, dtype: Any) -> Array:
    """Return the values of causes, given the numbers of their levels."""
    strengths = model.prior.strengths
    if strengths == (1,):
        return states.astype(dtype)
    return jnp.asarray([0, *strengths], dtype)[states]
