"""The update of components with a constant sum: MCA08 eq. 21, GSN07 eq. 15."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Link, Requirements, Rule, Spread
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.observed import one
from multicause.records import Parameters
from multicause.updates.base import Update


class NormalizedMean(Update):
    """The update W_hd = C_h Σ⟨A_hd⟩ y_d / Σ_d' Σ⟨A_hd'⟩ y_d': credit-weighted data, scaled to the component's sum C_h.

    C_h is the initial sum Σ_d W_hd of the component. The update maximizes the likelihood under this constraint for
    causes that cover one another evenly (MCA08 eq. 20).
    """

    requires = Requirements(
        rules=frozenset({Rule.MAXIMUM}),
        links=frozenset({Link.MEAN}),
        spreads=frozenset({Spread.MEAN}),
        expectations=frozenset({Expectation.CREDIT}),
        uncapped=True,
    )

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the data weighted by credit, and the credit in each dimension if values may be missing."""
        if inference.observed is not None:
            credited_data, credit = inference.pull((one, None), (None, one))
            return {"credited_data": credited_data, "credit": credit}
        return {"credited_data": inference.pull((one, None))[0]}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the scaled components; one without any credit does not change.

        If values may be missing, dimensions contribute by their mean and not by their sum, as they may be observed more
        or less often.
        """
        data = statistics["credited_data"]
        tiny = jnp.finfo(data.dtype).tiny
        if "credit" in statistics:
            credit = statistics["credit"]
            data = jnp.where(credit > tiny, data / jnp.maximum(credit, tiny), parameters.components)
        total, constant = jnp.sum(data, axis=1, keepdims=True), jnp.sum(parameters.components, axis=1, keepdims=True)
        return jnp.where(total > tiny, constant * data / jnp.maximum(total, tiny), parameters.components)
