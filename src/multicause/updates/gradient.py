"""An update by gradient steps, for various combinations and noises."""

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update


class Gradient(Update):
    """The step W ← W + rate · ⟨J (y − w̄)/V⟩ / ⟨J |J|₁/V⟩, with J = ∂w̄/∂W and V the variance of the noise.

    It is a step of generalized EM: the gradient of the expected log-likelihood divided by a diagonal bound of its
    curvature (Fisher information, with |J|₁ the number of causes that share a mean).

    Parameters
    ----------
    rate : float, default=1.0
        Length of the step; one is a full step.
    """

    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.ONE_HOT}),
        rules=frozenset({Rule.SUM, Rule.CLIPPED_SUM, Rule.MAXIMUM, Rule.MAXIMUM_MAGNITUDE, Rule.OTHER}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        expectations=frozenset({Expectation.CREDIT}),
    )

    def __init__(self, *, rate: float = 1.0) -> None:
        self.rate = rate

    def validate(self) -> None:
        """Raise ValueError unless the rate is positive and finite."""
        if not (self.rate > 0 and self.rate < float("inf")):
            raise ValueError(f"rate of Gradient must be a positive number; got {self.rate!r}.")

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return the curvature, and the target of a full step times the curvature.

        Both may be averaged over batches of a stream.
        """

        def precision(mean: Array, overlap: Array, noise: dict[str, Array]) -> Array:
            return 1 / model.noise.variance(mean, noise)

        gradient, curvature = inference.pull(
            (precision, lambda mean, overlap, noise: -mean * precision(mean, overlap, noise)),
            (None, lambda mean, overlap, noise: precision(mean, overlap, noise) * overlap),
        )
        # In double precision, because an offset of the data would cancel all digits of the gradient.
        curvature = curvature.astype(jnp.float64)
        return {"target": curvature * parameters.components + gradient, "curvature": curvature}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the components after one gradient step."""
        tiny = jnp.finfo(parameters.components.dtype).tiny
        old, curvature = parameters.components, statistics["curvature"]
        step = jnp.where(curvature > tiny, statistics["target"] / jnp.maximum(curvature, tiny) - old, 0)
        return model.combination.project(old + (self.rate * step).astype(old.dtype))
