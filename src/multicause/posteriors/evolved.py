"""Evolved states as a posterior: the states of each row are kept between iterations and bred by their log joint.

E. Guiraud, J. Drefs and J. Lücke, Evolutionary Expectation Maximization, GECCO (2018) 442–449; J. Drefs, E. Guiraud and
J. Lücke, Evolutionary Variational Optimization of Generative Models, JMLR 23 (2022) 21:1–51.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, Posterior
from multicause.posteriors.evolution import flip_search
from multicause.posteriors.evolution.bit_sets import n_words
from multicause.posteriors.evolution.breeding import children_of_rows, is_first
from multicause.posteriors.evolution.few_flips import FEW
from multicause.posteriors.evolution.log_joint_breeding import LogJointBreeding
from multicause.posteriors.expectations.row_states import RowStates, bytes_of_row, log_prior_of, scores_of
from multicause.posteriors.log_joint_search import MOST_DIGITS
from multicause.records import Block, Parameters


class Evolved(Posterior):
    """Posterior over separate states of each row, which are bred from iteration to iteration.

    In every iteration, children of a row's states arise by mutation (a cause changes, or two change places) and
    crossover (causes of one parent or the other), and the ``population`` states with the largest log p(s, y) survive.
    A state is only lost to better ones, so that the bound never falls at fixed parameters. Nothing but the log joint
    is needed, so that every combination and noise can be used, and rows may have any number of active causes. If the
    population includes all states, the posterior is exact.

    If binary causes add up under Gaussian noise, the log joints of all states that differ from a parent in one cause
    follow from one matrix product. Children are then the best of all these, for two parents of each row.

    States are kept for the rows that ``fit`` learns from, with every engine and in checkpoints. Random numbers belong
    to rows, so that states do not depend on blocks, devices or workers. New rows, as in ``transform``, ``score`` and
    every batch of ``partial_fit``, begin with few states and are bred ``n_generations`` times, always in the same way:
    ``partial_fit`` keeps nothing of the rows of earlier batches.

    Parameters
    ----------
    population : int, default=64
        Number S of states of a row.
    n_children : int, default=32
        Number of children in one generation. Where log joints of changes follow from a matrix product, half of them
        (at least one) belong to each of two parents, which have at most one for each cause.
    n_generations : int, default=20
        Number of generations of rows without states of earlier iterations; afterwards, one in every iteration.
    """

    monotone = True
    keeps_states = True
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

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> Evolved:
        """Return this posterior with a population that is at most the number of all states."""
        most = (1 + len(model.prior.strengths)) ** min(n_components, MOST_DIGITS)
        binary = model.prior.independent and model.prior.strengths == (1,)
        numbers = {"n_children": self.n_children, "n_generations": self.n_generations}
        return (Evolved if binary else EvolvedLevels)(min(int(self.population), most), **numbers)

    def n_states(self, n_components: int) -> int:
        """Return the number of states of a row."""
        return int(self.population)

    def log_joint_search(self) -> LogJointBreeding:
        """Return the same search for models that are only known by their log joint."""
        return LogJointBreeding(int(self.population), int(self.n_children), int(self.n_generations))

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: states, children or single causes, and a mean for each."""
        if linear:
            return self._bytes_of_flips(n_components, n_features, itemsize)
        n_states = max(int(self.population) + int(self.n_children), n_components + 1)
        comparisons = int(self.n_children) * (int(self.population) + int(self.n_children))
        return bytes_of_row(n_states, n_components, n_features, itemsize) + comparisons

    def _bytes_of_flips(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of a row if log joints follow from flips.

        It is twice that of the arrays: steps go on until they are over for all states of a block, so that blocks of
        fewer rows take fewer of them (8 to 12 % less time for 100 causes and 26 or 64 states).
        """
        n_states = int(self.population) + int(self.n_children)
        of_state = 3 * 8 * n_words(n_components) + 40
        of_state += 2 * itemsize * n_components if n_components <= FEW else 0
        return 2 * (n_states * of_state + itemsize * (8 * n_components + 4 * n_features) + 2 * 8 * n_components)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of sums over rows."""
        return itemsize * 6 * n_components * (n_components + n_features)

    @staticmethod
    def flips(model: GenerativeModel) -> bool:
        """Return whether log joints follow from flips of independent binary causes that add up."""
        return model.linear and model.prior.independent and model.prior.strengths == (1,)

    def _has_all(self, model: GenerativeModel, n_components: int) -> bool:
        """Return whether a population includes all states."""
        return (1 + len(model.prior.strengths)) ** min(n_components, MOST_DIGITS) <= int(self.population)

    def first_states(
        self, model: GenerativeModel, parameters: Parameters, block: Block, seeds: Array
    ) -> dict[str, Array]:
        """Return states of rows that have none yet, given a random number (n,) of each row.

        All arrays have the rows along their last axis. ``"states"`` are bits of words (words, S, n) if log joints
        follow from flips (:mod:`multicause.posteriors.evolution.flip_search`), else numbers of levels (S, H, n), zero
        for causes that are off.
        """
        H, size = len(parameters.components), int(self.population)
        if self.flips(model):
            if self._has_all(model, H):
                return flip_search.every_state(H, len(block.rows), seeds)
            numbers = (size, int(self.n_children), int(self.n_generations))
            return flip_search.first_states(model, parameters, block, seeds, *numbers)
        n_levels = 1 + len(model.prior.strengths)
        kept = {"seeds": seeds, "generation": jnp.zeros_like(seeds)}
        if self._has_all(model, H):
            every = jnp.asarray(np.arange(n_levels**H)[:, None] // n_levels ** np.arange(H) % n_levels, jnp.int8)
            return kept | {"states": jnp.broadcast_to(every[..., None], (*every.shape, len(seeds)))}
        singles = [np.zeros((1, H)), *(k * np.eye(H) for k in range(1, n_levels))]
        states = jnp.asarray(np.concatenate(singles), jnp.int8)
        # Empty states, which are not counted, fill up a population that is larger than the number of single causes.
        filling = jnp.zeros((max(0, size - len(states)), H), jnp.int8)
        states = jnp.broadcast_to(jnp.concatenate([states, filling]), (len(seeds), len(states) + len(filling), H))
        states = self._survivors(states, self._log_joint(model, parameters, block.rows, states))
        return jax.lax.fori_loop(
            0,
            int(self.n_generations),
            lambda _, last: self._breed(model, parameters, block, last),
            kept | {"states": jnp.moveaxis(states, 0, -1)},
        )

    def evolve(
        self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array, kept: dict[str, Array]
    ) -> tuple[Inference, dict[str, Array]]:
        """Return expectations over the states of the next generation, and its states."""
        if self._has_all(model, len(parameters.components)):
            return self.infer_from_states(model, parameters, block, temperature, kept), kept
        if self.flips(model):
            return flip_search.bred(model, parameters, block, temperature, kept, int(self.n_children))
        kept = self._breed(model, parameters, block, kept)
        return self.infer_from_states(model, parameters, block, temperature, kept), kept

    def _breed(
        self, model: GenerativeModel, parameters: Parameters, block: Block, kept: dict[str, Array]
    ) -> dict[str, Array]:
        """Return the states of the next generation, best first."""
        n_levels, states = 1 + len(model.prior.strengths), jnp.moveaxis(kept["states"], -1, 0)
        draws = (kept["seeds"], kept["generation"])
        children = children_of_rows(*draws, states, int(self.n_children), n_levels)
        both = jnp.concatenate([states, children], axis=1)
        best = self._survivors(both, self._log_joint(model, parameters, block.rows, both))
        return kept | {"states": jnp.moveaxis(best, 0, -1), "generation": kept["generation"] + 1}

    def _survivors(self, states: Array, log_joint: Array) -> Array:
        """Return the best states of each row, best first."""
        places = jax.lax.top_k(log_joint, int(self.population))[1]
        return jnp.take_along_axis(states, places[..., None], axis=1)

    @staticmethod
    def _log_joint(model: GenerativeModel, parameters: Parameters, rows: Array, states: Array) -> Array:
        """Return log p(s, y) of states up to a constant of each row; −∞ for those that are equal to an earlier one."""
        values = _values_of(model, states, rows.dtype)
        log_joint = scores_of(model, parameters, rows, values)[0] + log_prior_of(model, parameters, values)
        return jnp.where(is_first(states), log_joint, -jnp.inf)

    def infer_from_states(
        self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array, kept: dict[str, Array]
    ) -> Inference:
        """Return expectations over the states that were kept."""
        if self.flips(model):
            return flip_search.kept(model, parameters, block, temperature, kept)
        states = jnp.moveaxis(kept["states"], -1, 0)
        values = _values_of(model, states, block.rows.dtype)
        return RowStates(model, parameters, block, temperature, values, is_first(states))

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Breed states of new rows, and return expectations over them."""
        # The same row has the same states in every block, so that nothing depends on the other rows.
        seeds = jnp.zeros(len(block.rows), jnp.uint32)
        kept = self.first_states(model, parameters, block, seeds)
        return self.infer_from_states(model, parameters, block, temperature, kept)


class EvolvedLevels(Evolved):
    """Evolved states of causes with several levels, which always need means."""

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row with a mean for each state."""
        return super().bytes_per_row(n_components, n_features, itemsize)


def _values_of(model: GenerativeModel, states: Array, dtype: Any) -> Array:
    """Return the values of causes, given the numbers of their levels."""
    strengths = model.prior.strengths
    if strengths == (1,):
        return states.astype(dtype)
    return jnp.asarray([0, *strengths], dtype)[states]
