"""Multiplicative updates of non-negative components that add up."""

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.compatibility import Expectation, Spread, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update, shares_of_active
from multicause.updates.least_squares import OF_SQUARES, linear_sums

# Causes must be non-negative: with negative ones, components could become negative.
SWITCHED = frozenset({Support.BINARY, Support.ONE_HOT})


class Multiplicative(Update):
    """Repeated steps W_h ← W_h ⊙ ⟨y s_h⟩ / Σ_h' W_h' ⟨s_h' s_h⟩: ET10 eq. 27.

    Each step minimizes a majoriser of the squared error under W ≥ 0; where ⟨y s_h⟩ is negative, which can result from
    noise, that minimum is zero.

    Parameters
    ----------
    n_steps : int, default=20
        Number of partial steps in each M-step.
    """

    monotone = True
    requires = OF_SQUARES.also(supports=SWITCHED, nonnegative=True)

    def __init__(self, *, n_steps: int = 20) -> None:
        self.n_steps = n_steps

    def validate(self) -> None:
        """Raise ValueError unless there is at least one step."""
        if self.n_steps < 1:
            raise ValueError(f"n_steps of Multiplicative must be at least 1; got {self.n_steps!r}.")

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return first and second moments of the causes."""
        return linear_sums(inference)

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components after all partial steps."""
        wanted, pairs = statistics["cause_data"].clip(0), statistics["cause_pairs"]
        tiny = jnp.finfo(wanted.dtype).tiny

        def step(_: int, components: Array) -> Array:
            return components * wanted / jnp.maximum(matmul(pairs, components), tiny)

        start = parameters.components.astype(wanted.dtype)
        return jax.lax.fori_loop(0, self.n_steps, step, start).astype(parameters.components.dtype)


class MultiplicativeCounts(Update):
    """The step W_hd ← W_hd · Σ⟨s_h y_d / w̄_d⟩ / Σ⟨s_h⟩: exact EM for counts that are sums of the counts of causes."""

    monotone = True
    requires = OF_SQUARES.also(
        supports=SWITCHED,
        spreads=frozenset({Spread.MEAN}),
        expectations=frozenset({Expectation.CREDIT}),
        nonnegative=True,
    )

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the share of each cause in the data, W_hd Σ⟨s_h y_d / w̄_d⟩, and how often it is active."""
        (pulled,) = inference.pull((lambda mean, overlap, noise: 1 / model.noise.variance(mean, noise), None))
        active = inference.total_causes if inference.observed is None else inference.observed_causes
        return {"shares": parameters.components * pulled, "active": active}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components after one step; those of unused causes do not change."""
        return shares_of_active(statistics["shares"], statistics["active"], parameters.components)
