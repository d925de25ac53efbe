"""The interface of a noise model, the distribution of an observation given its mean."""

from abc import abstractmethod
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.compatibility import Likelihood, Link, Spread
from multicause.expectations import Inference
from multicause.parts import Part
from multicause.records import Moments


class Noise(Part):
    """An exponential family with its mean w as parameter, independently in each dimension::

        log p(y | w) = η(w)·y − A(w) + b(y)

    In this form, the scores of all states are one matrix product, and the maximum-likelihood estimate of w is the
    weighted mean of the data for any family (MCA08 appendix A). ``parameters`` is the dictionary that
    :meth:`initialize` returns; it is empty for a family without a scale. A noise that is not such a family declares it
    by its ``likelihood``, and has none of ``natural``, ``log_normalizer``, ``variance`` and ``sample``.
    """

    #: Meaning of w: the mean of the data, or another parameter.
    link = Link.MEAN
    #: Whether the likelihood is a function of means, or only of causes.
    likelihood = Likelihood.OF_MEANS
    #: How the variance depends on the mean.
    spread = Spread.OTHER
    #: Smallest and largest valid w.
    means: tuple[float, float] = (0.0, np.inf)
    #: Names of parameters with one value per dimension; functions of w may be called with values of one dimension only.
    of_features: tuple[str, ...] = ()

    #: Natural parameter η(w), elementwise.
    natural: Callable[[Array, dict[str, Array]], Array]
    #: Log normalizer A(w), elementwise.
    log_normalizer: Callable[[Array, dict[str, Array]], Array]
    #: Variance of y given its mean, elementwise.
    variance: Callable[[Array, dict[str, Array]], Array]
    #: Draw observations with given means, using a random key.
    sample: Callable[[Array, Array, dict[str, Array]], Array]

    def optional_methods(self) -> tuple[str, ...]:
        """Return the names of functions of a mean, which only noise with a likelihood of means has."""
        return ("natural", "log_normalizer", "variance", "sample") if self.likelihood == Likelihood.OF_MEANS else ()

    @property
    def linear(self) -> bool:
        """Whether η(w) is proportional to w: if causes add up, projections then replace means of states."""
        return self.likelihood == Likelihood.OF_MEANS and self.spread == Spread.CONSTANT

    def overshoot(self, mean: Array, values: Array, parameters: dict[str, Array]) -> Array:
        """Return log p(y | max{y, w}) − log p(y | y), elementwise.

        It is the cost of a mean that is too large, which no further cause can reduce.
        """
        if self.linear:
            return -0.5 * self.standardize(jnp.maximum(mean - values, 0), parameters) ** 2
        reached = self.natural(mean, parameters) * values - self.log_normalizer(mean, parameters)
        peak = self.natural(values, parameters) * values - self.log_normalizer(values, parameters)
        return jnp.where(mean > values, reached - peak, 0)

    def score_singles(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array | None = None
    ) -> Array:
        """Return Σ_d η(W_hd)·y_d − A(W_hd) of every single cause (H, n); overridden if noise differs between causes.

        If values may be missing, ``observed`` (n, D) is zero for them, as are the rows, and one for the others.
        """
        if observed is not None:
            normalizers = matmul(self.log_normalizer(components, parameters), observed.T)
            return matmul(self.natural(components, parameters), rows.T) - normalizers
        normalizers = jnp.sum(self.log_normalizer(components, parameters), axis=-1)
        return matmul(self.natural(components, parameters), rows.T) - normalizers[:, None]

    def complete(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weighted: Array
    ) -> tuple[Array, Array] | None:
        """Return Σ_n w_n q_n(h) of ⟨y⟩ (H, D) and ⟨y yᵀ⟩ (H, D, D) relative to the origin, given the observed values.

        Missing values depend on observed ones only if noise is correlated between dimensions; None for other noise.
        """
        return None

    def conditional_mean(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weights: Array
    ) -> Array | None:
        """Return Σ_h q_n(h) ⟨y⟩ given the observed values and cause h (n, D), for correlated noise; else None."""
        return None

    def origin(self, parameters: dict[str, Array]) -> Array | None:
        """Return a point (D,) near the data that may be subtracted from data and means; None if that is not allowed.

        If only the difference y − w matters, squares are expanded around this point: an offset of the data would
        otherwise cause cancellation.
        """
        return None

    def standardize(self, values: Array, parameters: dict[str, Array]) -> Array:
        """Return data or means (..., D) divided by the standard deviation of noise that does not depend on the mean.

        With such noise (``linear``), η(w)·y is the scalar product of the standardized w and y.
        """
        return values / jnp.sqrt(self.variance(values, parameters))

    def split_parameters(self, parameters: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the parameters with one value for each dimension, and all others."""
        of_features = {name: value for name, value in parameters.items() if name in self.of_features}
        return of_features, {name: value for name, value in parameters.items() if name not in of_features}

    def summarize(self, rows: Array) -> Array:
        """Return a number for each row (n, D) that :meth:`log_base` needs, computed once; zero by default: (n,)."""
        return jnp.zeros(rows.shape[0], rows.dtype)

    @abstractmethod
    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return Σ_d b(y_d) of rows (n, D) with these summaries: (n,)."""

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return the size of the terms that cancel in the log-likelihood of each row, a scale of its rounding error:
        (n,).

        ``rows`` are relative to the point around which squares are expanded. Its distance from zero contributes twice:
        components are rounded to their dtype, which costs the square of that rounding error, and their differences are
        computed in double precision.
        """
        size, origin = jnp.abs(self.log_base(rows, summary, parameters)), self.origin(parameters)
        if origin is None:
            return size
        epsilon = jnp.finfo(rows.dtype).eps
        differences = jnp.finfo(jnp.float64).eps / epsilon * jnp.sqrt(size)
        distance = jnp.linalg.norm(self.standardize(origin, parameters))
        return size + distance * (epsilon * distance + differences).astype(size.dtype)

    def sample_given(self, key: Array, mean: Array, causes: Array, parameters: dict[str, Array]) -> Array:
        """Draw observations with given means, for noise that may depend on the causes (n, H)."""
        return self.sample(key, mean, parameters)

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError if X (n, D) is impossible under this noise. All finite numbers are allowed by default.

        It may depend on the limits of values and on whether they are binary or whole numbers: of large data, it sees
        the smallest and the largest value of each column, and examples that are not binary and not whole, if there are
        any. Only if it refuses these, it sees all rows.
        """
        return

    def expected(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the mean of the data (..., D) given w̄; by default w̄ itself. It must be linear in w̄."""
        return mean

    def typical_rows(self, means: np.ndarray) -> np.ndarray:
        """Return the most probable rows given means; by default the means themselves."""
        return means

    def remedy(self, components: np.ndarray) -> str:
        """Return advice if learned components suggest that the data do not suit this noise; empty if they do."""
        return ""

    def initialize(self, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return initial parameters, from the user's ``noise_scale`` or from the data's moments."""
        if noise_scale is not None:
            raise ValueError(
                f"{type(self).__name__} noise has no scale, but noise_scale={noise_scale!r} was given; leave it None."
            )
        return {}

    def initialize_for(self, n_components: int, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return initial parameters for this number of causes, for noise that may differ between causes."""
        return self.initialize(moments, noise_scale)

    def statistics(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        """Return the sums over rows that :meth:`maximize` needs, weighted by ``inference.row_weights``."""
        return {}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, n_features: int
    ) -> dict[str, Array]:
        """Return parameters that maximize the expected log-likelihood, given the statistics."""
        return parameters

    def maximize_around(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, components: Array
    ) -> dict[str, Array]:
        """Return new parameters, given the new components; by default, residuals are around the old ones."""
        return self.maximize(parameters, statistics, weight, components.shape[-1])
