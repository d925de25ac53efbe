"""The update by gradient, which serves every combination and noise."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Support
from multicause.learning.updates.base import Update
from multicause.model import Model, Parameters
from multicause.posteriors.base import Inference


class Gradient(Update):
    """W ← W + rate · ⟨J (y − w̄)/V⟩ / ⟨J |J|₁/V⟩, with J = ∂w̄/∂W and V the variance of the noise.

    A step of generalised EM: the gradient of the expected log-likelihood over a diagonal bound of its curvature
    (Fisher information, with |J|₁ the number of causes that share a mean).

    Parameters
    ----------
    rate : float, default=1.0
        Length of the step; one is a full step.
    """

    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.ONE_HOT}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        expectations=frozenset({Expectation.CREDIT}),
    )

    def __init__(self, *, rate: float = 1.0) -> None:
        self.rate = rate

    def validate(self) -> None:
        """A step forward."""
        if not (self.rate > 0 and self.rate < float("inf")):
            raise ValueError(f"rate of Gradient must be a positive number; got {self.rate!r}.")

    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Curvature, and where a full step leads, times curvature: both may be averaged over batches of a stream."""

        def precision(mean: Array, overlap: Array, noise: dict[str, Array]) -> Array:
            return 1 / model.noise.variance(mean, noise)

        gradient, curvature = inference.pull(
            (precision, lambda mean, overlap, noise: -mean * precision(mean, overlap, noise)),
            (None, lambda mean, overlap, noise: precision(mean, overlap, noise) * overlap),
        )
        # In double precision: an offset of the data would leave no digits of the gradient.
        curvature = curvature.astype(jnp.float64)
        return {"target": curvature * parameters.components + gradient, "curvature": curvature}

    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """One step."""
        tiny = jnp.finfo(parameters.components.dtype).tiny
        old, curvature = parameters.components, statistics["curvature"]
        step = jnp.where(curvature > tiny, statistics["target"] / jnp.maximum(curvature, tiny) - old, 0)
        return model.combination.project(old + (self.rate * step).astype(old.dtype))
