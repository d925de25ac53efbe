"""The mean of data with missing values, which is learned with the components.

If values are missing, the mean of the observed values is not the maximum-likelihood estimate of the mean: which values
are observed may depend on the others. Gaussian factors therefore have an ``offset`` (D,) among the parameters of their
noise while they learn from such data, relative to the mean that was subtracted before.
"""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array, matmul, observed_data
from multicause.expectations import Inference


def offset_statistics(inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
    """Return weights and sums of data and causes over the observed values of each dimension; empty if not needed."""
    if inference.observed is None or "offset" not in parameters:
        return {}
    weights = inference.row_weights.astype(jnp.float64)
    data = observed_data(inference.rows, None, inference.observed)
    return {
        "offset_weight": matmul(weights, inference.observed),
        "offset_data": matmul(weights, data),
        "offset_causes": inference.observed_causes,
    }


def maximized_offset(parameters: dict[str, Array], statistics: dict[str, Array], components: Array) -> dict[str, Array]:
    """Return the parameters with the mean residual around the new components as offset, if there is one."""
    if "offset_data" not in statistics:
        return parameters
    old, weight = parameters["offset"], statistics["offset_weight"]
    residual = statistics["offset_data"] - jnp.sum(statistics["offset_causes"] * components, axis=0)
    new = jnp.where(weight > 0, residual / jnp.where(weight > 0, weight, 1), old)
    return {**parameters, "offset": new.astype(old.dtype)}
