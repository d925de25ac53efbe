"""The interface of a noise model: how a mean becomes an observation."""

from abc import abstractmethod
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.compatibility import Likelihood, Link, Spread
from multicause.model import Moments
from multicause.parts import Part
from multicause.posteriors.base import Inference


class Noise(Part):
    """An exponential family with its mean w as parameter, independently in each dimension::

        log p(y | w) = η(w)·y − A(w) + b(y)

    This form makes the scores of all states one matrix product, and makes the weighted mean of the data the best
    w for any family (MCA08 appendix A). ``parameters`` is the dictionary that :meth:`initialize` returns; it is
    empty for a family without a scale. A noise that is no such family says so by its ``likelihood``, and has none of
    ``natural``, ``log_normalizer``, ``variance`` and ``sample``.
    """

    #: What w is: the mean of the data, or another parameter.
    link = Link.MEAN
    #: Whether there is a likelihood of every mean, or only of causes.
    likelihood = Likelihood.OF_MEANS
    #: How the variance depends on the mean.
    spread = Spread.OTHER
    #: Smallest and largest w that makes sense.
    means: tuple[float, float] = (0.0, np.inf)
    #: Names of parameters with one value for each dimension; functions of w may be called with those of one dimension.
    of_features: tuple[str, ...] = ()

    #: η(w), elementwise.
    natural: Callable[[Array, dict[str, Array]], Array]
    #: A(w), elementwise.
    log_normalizer: Callable[[Array, dict[str, Array]], Array]
    #: Variance of y given its mean, elementwise.
    variance: Callable[[Array, dict[str, Array]], Array]
    #: Observations with given means, from a key.
    sample: Callable[[Array, Array, dict[str, Array]], Array]

    def optional_methods(self) -> tuple[str, ...]:
        """Return the functions of a mean, which only noise with a likelihood of means has."""
        return ("natural", "log_normalizer", "variance", "sample") if self.likelihood == Likelihood.OF_MEANS else ()

    @property
    def linear(self) -> bool:
        """Whether η(w) is proportional to w: with linearly added causes, projections then replace whole means."""
        return self.likelihood == Likelihood.OF_MEANS and self.spread == Spread.CONSTANT

    def overshoot(self, mean: Array, values: Array, parameters: dict[str, Array]) -> Array:
        """log p(y | max{y, w}) − log p(y | y), elementwise: what a mean costs that is too large, whatever is added."""
        if self.linear:
            return -0.5 * self.standardize(jnp.maximum(mean - values, 0), parameters) ** 2
        reached = self.natural(mean, parameters) * values - self.log_normalizer(mean, parameters)
        peak = self.natural(values, parameters) * values - self.log_normalizer(values, parameters)
        return jnp.where(mean > values, reached - peak, 0)

    def score_singles(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array | None = None
    ) -> Array:
        """Σ_d η(W_hd)·y_d − A(W_hd) of every cause alone: (H, n). Noise that differs between causes has its own.

        Where values may be missing, ``observed`` (n, D) has zeros for them, as the rows have, and ones elsewhere.
        """
        if observed is not None:
            normalizers = matmul(self.log_normalizer(components, parameters), observed.T)
            return matmul(self.natural(components, parameters), rows.T) - normalizers
        normalizers = jnp.sum(self.log_normalizer(components, parameters), axis=-1)
        return matmul(self.natural(components, parameters), rows.T) - normalizers[:, None]

    def complete(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weighted: Array
    ) -> tuple[Array, Array] | None:
        """Σ_n w_n q_n(h) of ⟨y⟩ (H, D) and ⟨y yᵀ⟩ (H, D, D) relative to the origin, given the observed values.

        Only noise that is correlated between dimensions says more of missing values than their mean; None for others.
        """
        return None

    def conditional_mean(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weights: Array
    ) -> Array | None:
        """Σ_h q_n(h) ⟨y⟩ given the observed values and cause h (n, D), for noise that is correlated; else None."""
        return None

    def origin(self, parameters: dict[str, Array]) -> Array | None:
        """A point (D,) amid the data that may be subtracted from data and means alike; None if that is not allowed.

        Where only the difference y − w matters, squares are expanded around this point: an offset of the data would
        otherwise cancel their digits.
        """
        return None

    def standardize(self, values: Array, parameters: dict[str, Array]) -> Array:
        """Data or means (..., D) divided by the standard deviation of noise that does not depend on the mean.

        With such noise (``linear``), η(w)·y is the scalar product of the standardized w and y.
        """
        return values / jnp.sqrt(self.variance(values, parameters))

    def split_parameters(self, parameters: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the parameters with one value for each dimension, and all others."""
        own = {name: value for name, value in parameters.items() if name in self.of_features}
        return own, {name: value for name, value in parameters.items() if name not in own}

    def summarize(self, rows: Array) -> Array:
        """A number for each row (n, D) that :meth:`log_base` needs and that is computed once, by default zero: (n,)."""
        return jnp.zeros(rows.shape[0], rows.dtype)

    @abstractmethod
    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Σ_d b(y_d) of rows (n, D) with these summaries: (n,)."""

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Size of the terms that cancel in the log-likelihood of each row, by which its rounding is judged: (n,).

        ``rows`` are relative to the point around which squares are expanded. How far that is from zero counts twice:
        components are rounded to their dtype, which costs the square of that rounding, and their differences are taken
        in double precision.
        """
        size, origin = jnp.abs(self.log_base(rows, summary, parameters)), self.origin(parameters)
        if origin is None:
            return size
        epsilon = jnp.finfo(rows.dtype).eps
        differences = jnp.finfo(jnp.float64).eps / epsilon * jnp.sqrt(size)
        distance = jnp.linalg.norm(self.standardize(origin, parameters))
        return size + distance * (epsilon * distance + differences).astype(size.dtype)

    def sample_given(self, key: Array, mean: Array, causes: Array, parameters: dict[str, Array]) -> Array:
        """The same, where noise may differ between causes (n, H)."""
        return self.sample(key, mean, parameters)

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError if this noise cannot have made X. All finite numbers are allowed by default."""
        return

    def expected(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the mean of the data (..., D) given w̄; by default w̄ itself. It must be linear in w̄."""
        return mean

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return rows that this noise makes most probably of given means; by default the means themselves."""
        return means

    def remedy(self, components: np.ndarray) -> str:
        """What a person can do where learned components suggest that data do not suit this noise; empty if they do."""
        return ""

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Parameters before learning, from the user's ``noise_scale`` or from the data's moments."""
        if noise_scale is not None:
            raise ValueError(
                f"{type(self).__name__} noise has no scale, but noise_scale={noise_scale!r} was given; leave it None."
            )
        return {}

    def initialize_for(self, n_components: int, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """The same, where noise may differ between causes."""
        return self.initialize(moments, noise_scale)

    def statistics(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        """Sums over rows that :meth:`maximize` needs, with ``inference.row_weights``."""
        return {}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, n_features: int
    ) -> dict[str, Array]:
        """Parameters that maximise the expected log-likelihood, given the sums."""
        return parameters

    def maximize_around(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, components: Array
    ) -> dict[str, Array]:
        """The same, given the new components; by default residuals are those around the old ones."""
        return self.maximize(parameters, statistics, weight, components.shape[-1])
