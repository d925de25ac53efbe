"""The update of components by credit: MCA08 eq. 9, ET10 eq. 30."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Link, Requirements, Rule
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.observed import one
from multicause.records import Parameters
from multicause.updates.base import Update


class CreditMean(Update):
    """The update W_hd = Σ⟨A_hd⟩ y_d / Σ⟨A_hd⟩: the mean of the data, weighted by the credit of cause h in dimension d.

    Credits are computed with the old W, so this is a fixed-point step: the bound may fall slightly (MCA08 §3). It
    applies to every noise with its mean as parameter, because the maximum-likelihood mean is the mean of the data.
    """

    requires = Requirements(
        rules=frozenset({Rule.MAXIMUM, Rule.MAXIMUM_MAGNITUDE}),
        links=frozenset({Link.MEAN}),
        expectations=frozenset({Expectation.CREDIT}),
    )

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the sums of data weighted by credit, and of the credit: (H, D) each."""
        relative_data, credit = inference.pull((one, None), (None, one))
        origin = model.noise.origin(parameters.noise)
        credited_data = relative_data.astype(jnp.float64)
        if origin is not None:
            credited_data += credit * origin.astype(jnp.float64)
        return {"credited_data": credited_data, "credit": credit}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the credit-weighted means; weights without credit do not change, as eq. 6 already holds for them."""
        credit = statistics["credit"]
        tiny = jnp.finfo(credit.dtype).tiny
        mean = (statistics["credited_data"] / jnp.maximum(credit, tiny)).astype(credit.dtype)
        return model.combination.project(jnp.where(credit > tiny, mean, parameters.components))
