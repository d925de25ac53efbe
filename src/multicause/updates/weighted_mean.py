"""The update of the means of mixtures: TN10 eq. 10.3."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Link, Requirements, Spread, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update, of_features


class WeightedMean(Update):
    """The update g_v = ⟨P[v|u] u⟩ / ⟨P[v|u]⟩, the mean of the rows weighted by responsibilities.

    It is the exact maximum for every noise with its mean as parameter, if one cause generates each row.
    """

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.ONE_HOT}),
        links=frozenset({Link.MEAN}),
        spreads=frozenset({Spread.CONSTANT, Spread.MEAN, Spread.OTHER}),
        expectations=frozenset({Expectation.MOMENTS}),
    )

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the sums of data weighted by responsibilities, and of the responsibilities."""
        if inference.observed is not None:
            return {"cause_data": inference.observed_cause_data, "active": inference.observed_causes}
        return {"cause_data": inference.cause_data, "active": inference.total_causes}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the weighted means; components of causes without rows do not change."""
        active = of_features(statistics["active"])
        tiny = jnp.finfo(active.dtype).tiny
        mean = (statistics["cause_data"] / jnp.maximum(active, tiny)).astype(parameters.components.dtype)
        return model.combination.project(jnp.where(active > tiny, mean, parameters.components))
