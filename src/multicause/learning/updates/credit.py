"""The update by credit: MCA08 eq. 9, ET10 eq. 30."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Link, Requirements, Rule
from multicause.learning.updates.base import Update
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference
from multicause.posteriors.observed import one


class CreditMean(Update):
    """W_hd = Σ⟨A_hd⟩ y_d / Σ⟨A_hd⟩: the mean of the data for which cause h has the credit in dimension d.

    Credits are those of the old W, so this is a fixed-point step: the bound may fall a little on the way
    (MCA08 §3). It serves every noise with its mean as parameter, because the best mean is the mean of the data.
    """

    requires = Requirements(
        rules=frozenset({Rule.MAXIMUM}), links=frozenset({Link.MEAN}), expectations=frozenset({Expectation.CREDIT})
    )

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Data and weight that come with each credit."""
        relative_data, credit = inference.pull((one, None), (None, one))
        origin = model.noise.origin(parameters.noise)
        credited_data = relative_data.astype(jnp.float64)
        if origin is not None:
            credited_data += credit * origin.astype(jnp.float64)
        return {"credited_data": credited_data, "credit": credit}

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Weights without any credit stay as they are: eq. 6 holds for them already."""
        credit = statistics["credit"]
        tiny = jnp.finfo(credit.dtype).tiny
        mean = (statistics["credited_data"] / jnp.maximum(credit, tiny)).astype(credit.dtype)
        return model.combination.project(jnp.where(credit > tiny, mean, parameters.components))
