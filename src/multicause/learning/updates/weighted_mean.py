"""The update of mixtures: TN10 eq. 10.3."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Link, Requirements, Support
from multicause.learning.updates.base import Update, of_features
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference


class WeightedMean(Update):
    """g_v = ⟨P[v|u] u⟩ / ⟨P[v|u]⟩, the mean of the rows for which a cause is responsible.

    The exact maximum for every noise with its mean as parameter, where one cause makes a row.
    """

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.ONE_HOT}),
        links=frozenset({Link.MEAN}),
        expectations=frozenset({Expectation.MOMENTS}),
    )

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Data and weight of each cause."""
        if inference.observed is not None:
            return {"cause_data": inference.observed_cause_data, "active": inference.observed_causes}
        return {"cause_data": inference.cause_data, "active": inference.total_causes}

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Causes without rows stay where they are."""
        active = of_features(statistics["active"])
        tiny = jnp.finfo(active.dtype).tiny
        mean = (statistics["cause_data"] / jnp.maximum(active, tiny)).astype(parameters.components.dtype)
        return model.combination.project(jnp.where(active > tiny, mean, parameters.components))
