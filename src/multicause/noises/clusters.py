"""Gaussian noise that differs between the causes of a mixture: TN10 eq. 10.15–10.16 and 10.19."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, observed_data, sum_in_double
from multicause.compatibility import Expectation, Likelihood, Requirements, Support
from multicause.expectations import Inference
from multicause.noises.base import Noise
from multicause.noises.gaussian import RELATIVE_FLOOR, ROUNDINGS
from multicause.noises.incomplete_clusters import completed_sums, conditional_means, log_densities
from multicause.records import Moments

COVARIANCES = ("spherical", "diagonal", "full")


class ClusterGaussian(Noise):
    """Gaussian noise p(y | h) = N(y; W_h, Σ_h) of each cause h, for priors with one active cause.

    Learned covariances have maximum likelihood among all whose variances, in every direction, are at least
    ``min_variance``: without it, a cluster of one row, or of rows in a plane, would make the likelihood infinite.

    Parameters
    ----------
    covariance : {"spherical", "diagonal", "full"}, default="spherical"
        Form of Σ_h: one variance, one for each dimension, or any covariance matrix.
    min_variance : float, optional
        Regularization: the smallest variance in any direction; by default a millionth of the data's variance.
    """

    likelihood = Likelihood.OF_CAUSES
    means = (-np.inf, np.inf)
    requires = Requirements(
        supports=frozenset({Support.ONE_HOT}), expectations=frozenset({Expectation.RESPONSIBILITIES})
    )

    def __init__(self, *, covariance: str = "spherical", min_variance: float | None = None) -> None:
        self.covariance = covariance
        self.min_variance = min_variance

    def validate(self) -> None:
        """Raise ValueError unless the form is known and ``min_variance`` is non-negative."""
        if self.covariance not in COVARIANCES:
            raise ValueError(f"Unknown covariance {self.covariance!r}. Known: {', '.join(map(repr, COVARIANCES))}.")
        if self.min_variance is not None and not (np.isfinite(self.min_variance) and self.min_variance >= 0):
            raise ValueError(f"min_variance must be a number of at least 0, or None; got {self.min_variance!r}.")

    def initialize_for(self, n_components: int, moments: Moments, noise_scale: float | None) -> dict[str, np.ndarray]:
        """Return the data's variance within dimensions for every cause, or the square of the user's ``noise_scale``.

        ``origin`` is the mean of the data.
        """
        n_features = len(moments.mean)
        # Offsets of dimensions belong to the means of all clusters, and say nothing about their widths.
        spread = moments.spread or moments.variance
        floor = max(RELATIVE_FLOOR, ROUNDINGS * moments.epsilon) * spread
        floor = floor if self.min_variance is None else self.min_variance
        variance = spread if noise_scale is None else float(noise_scale) ** 2
        shapes = {
            "spherical": np.full(n_components, variance),
            "diagonal": np.full((n_components, n_features), variance),
            "full": np.broadcast_to(variance * np.eye(n_features), (n_components, n_features, n_features)),
        }
        return {"variance": shapes[self.covariance], "floor": np.asarray(floor), "origin": np.asarray(moments.mean)}

    def origin(self, parameters: dict[str, Array]) -> Array:
        """Return the mean of the initial data."""
        return parameters["origin"]

    def score_singles(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array | None = None
    ) -> Array:
        """Return −½ (y − W_h)ᵀ Σ_h⁻¹ (y − W_h) − ½ log |Σ_h| over the observed dimensions: (H, n)."""
        centred, means, variance = rows, components, parameters["variance"]  # relative to the origin
        if observed is not None:
            return self._score_observed(means, variance, centred, observed)
        if self.covariance == "spherical":
            squares = jnp.sum(centred**2, axis=1) - 2 * matmul(means, centred.T) + jnp.sum(means**2, axis=1)[:, None]
            log_det = rows.shape[1] * jnp.log(variance)
            return -0.5 * (jnp.maximum(squares, 0) / variance[:, None] + log_det[:, None])
        if self.covariance == "diagonal":
            precision = 1 / variance
            squares = matmul(precision, (centred**2).T) - 2 * matmul(means * precision, centred.T)
            squares = squares + jnp.sum(means**2 * precision, axis=1)[:, None]
            return -0.5 * (jnp.maximum(squares, 0) + jnp.sum(jnp.log(variance), axis=1)[:, None])

        def one(cause: tuple[Array, Array]) -> Array:
            mean, whitening = cause
            return jnp.sum((matmul(centred, whitening) - matmul(mean, whitening)) ** 2, axis=1)

        whitening, log_det = _whitening(variance)
        return -0.5 * (jax.lax.map(one, (means, whitening)) + log_det[:, None])

    def _score_observed(self, means: Array, variance: Array, centred: Array, observed: Array) -> Array:
        """Return these scores for rows (n, D) in which missing values are zero: (H, n)."""
        if self.covariance == "full":
            return log_densities(means, variance, centred, observed)
        if self.covariance == "spherical":
            # Products with the components alone, as all dimensions of a cluster have the same variance.
            products = matmul(means**2, observed.T) - 2 * matmul(means, centred.T)
            squares = jnp.maximum(jnp.sum(centred**2, axis=1) + products, 0) / variance[:, None]
            return -0.5 * (squares + jnp.log(variance)[:, None] * jnp.sum(observed, axis=1))
        squares = matmul(1 / variance, (centred**2).T) - 2 * matmul(means / variance, centred.T)
        squares = squares + matmul(means**2 / variance, observed.T)
        return -0.5 * (jnp.maximum(squares, 0) + matmul(jnp.log(variance), observed.T))

    def complete(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weighted: Array
    ) -> tuple[Array, Array] | None:
        """Return sums with missing values as latent variables, for full covariances; see ``Noise.complete``."""
        if self.covariance != "full":
            return None
        means = components - parameters["origin"]
        return completed_sums(means, parameters["variance"], rows, observed, weighted)

    def conditional_mean(
        self, components: Array, parameters: dict[str, Array], rows: Array, observed: Array, weights: Array
    ) -> Array | None:
        """Return the means of missing values given the observed ones, for full covariances: (n, D)."""
        if self.covariance != "full":
            return None
        origin = parameters["origin"]
        return conditional_means(components - origin, parameters["variance"], rows, observed, weights) + origin

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return b(y) = −½ D log 2π of each row: (n,)."""
        return summary - 0.5 * rows.shape[1] * jnp.log(2 * jnp.pi).astype(summary.dtype)

    def magnitude(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return ‖y − origin‖² over the smallest variance, which cancels against terms of the means: (n,)."""
        smallest = jnp.min(_diagonal(parameters["variance"], self.covariance))
        return jnp.sum(rows**2, axis=1) / smallest + rows.shape[1]

    def sample_given(self, key: Array, mean: Array, causes: Array, parameters: dict[str, Array]) -> Array:
        """Draw observations: the mean plus noise of the active cause."""
        draws = jax.random.normal(key, mean.shape, mean.dtype)
        chosen = jnp.argmax(causes, axis=1)
        variance = parameters["variance"]
        if self.covariance == "full":
            # One factor per sample would take D² numbers each; causes are processed in a loop instead.
            def add(total: Array, cause: tuple[Array, Array]) -> tuple[Array, None]:
                number, factor = cause
                mine = (chosen == number)[:, None]
                return jnp.where(mine, mean + matmul(draws, factor.T), total), None

            factors = jnp.linalg.cholesky(variance)
            return jax.lax.scan(add, mean, (jnp.arange(len(factors)), factors))[0]
        scale = jnp.sqrt(variance)[chosen]
        return mean + draws * (scale[:, None] if self.covariance == "spherical" else scale)

    def statistics(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        """Return Σ_n w_n q_n(h) of 1, y − origin, and its squares or products.

        If values may be missing, sums are over observed values; with full covariances, missing values are latent.
        """
        weighted, rows = inference.weighted, inference.rows
        if inference.observed is not None:
            return self._statistics_of_observed(inference, parameters)
        centred = rows - parameters["origin"]
        total = inference.total_causes
        sums = {"weight": total, "data": inference.cause_data - total[:, None] * parameters["origin"]}
        if self.covariance == "spherical":
            sums["squares"] = sum_in_double(weighted * jnp.sum(centred**2, axis=1), axis=1)
        elif self.covariance == "diagonal":
            sums["squares"] = matmul(weighted, centred**2)
        else:
            sums["squares"] = jax.lax.map(lambda mine: matmul((centred * mine[:, None]).T, centred), weighted)
        return sums

    def _statistics_of_observed(self, inference: Inference, parameters: dict[str, Array]) -> dict[str, Array]:
        counts = inference.observed_causes
        data = inference.observed_cause_data - counts * parameters["origin"]
        if self.covariance == "full":
            squares = inference.completed_squares  # type: ignore[attr-defined]
            return {"weight": inference.total_causes, "data": data, "squares": squares}
        squares = observed_data(inference.rows, parameters["origin"], inference.observed) ** 2
        if self.covariance == "spherical":
            of_clusters = sum_in_double(inference.weighted * jnp.sum(squares, axis=1), axis=1)
        else:
            of_clusters = matmul(inference.weighted, squares)
        return {"weight": counts, "data": data, "squares": of_clusters}

    def maximize_around(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, components: Array
    ) -> dict[str, Array]:
        """Return ⟨P[v|u] |u − g_v|²⟩ / (N_u γ_v) (TN10 eq. 10.3 and appendix); unused clusters keep theirs."""
        means, data, old = components - parameters["origin"], statistics["data"], parameters["variance"]
        count = statistics["weight"]
        if count.ndim == 2:  # one count per dimension, if values may be missing
            return self._maximize_observed(parameters, statistics, means)
        used = count > jnp.finfo(count.dtype).tiny
        safe = jnp.where(used, count, 1)
        if self.covariance == "full":
            cross = data[:, :, None] * means[:, None, :]
            products = statistics["squares"] - cross - jnp.swapaxes(cross, 1, 2)
            products = products / safe[:, None, None] + means[:, :, None] * means[:, None, :]
            new = _at_least(products, parameters["floor"])
            return {**parameters, "variance": jnp.where(used[:, None, None], new, old).astype(old.dtype)}
        squares = -2 * data * means + count[:, None] * means**2
        if self.covariance == "spherical":
            variance = (statistics["squares"] + jnp.sum(squares, axis=1)) / (safe * means.shape[1])
        else:
            variance = (statistics["squares"] + squares) / safe[:, None]
            used = used[:, None]
        new = jnp.maximum(variance, parameters["floor"])
        return {**parameters, "variance": jnp.where(used, new, old).astype(old.dtype)}

    def _maximize_observed(
        self, parameters: dict[str, Array], statistics: dict[str, Array], means: Array
    ) -> dict[str, Array]:
        """Return mean squares of the observed values around the means; variances without values do not change."""
        count, old = statistics["weight"], parameters["variance"]
        squares = -2 * statistics["data"] * means + count * means**2
        if self.covariance == "spherical":
            squares, count = jnp.sum(squares, axis=1), jnp.sum(count, axis=1)
        used = count > jnp.finfo(count.dtype).tiny
        variance = (statistics["squares"] + squares) / jnp.where(used, count, 1)
        new = jnp.maximum(variance, parameters["floor"])
        return {**parameters, "variance": jnp.where(used, new, old).astype(old.dtype)}


def _whitening(covariance: Array) -> tuple[Array, Array]:
    """Return matrices P with P Pᵀ = Σ⁻¹ (H, D, D), and log |Σ| (H,)."""
    factor = jnp.linalg.cholesky(covariance)
    identity = jnp.broadcast_to(jnp.eye(covariance.shape[-1], dtype=covariance.dtype), covariance.shape)
    inverse = jax.scipy.linalg.solve_triangular(factor, identity, lower=True)
    log_det = 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    return jnp.swapaxes(inverse, 1, 2), log_det


def _at_least(covariance: Array, floor: Array) -> Array:
    """Return the maximum-likelihood covariance with all eigenvalues at or above the floor: smaller ones are raised."""
    symmetric = 0.5 * (covariance + jnp.swapaxes(covariance, 1, 2))
    values, vectors = jnp.linalg.eigh(symmetric)
    raised = jnp.maximum(values, floor)
    repaired = matmul(vectors * raised[:, None, :], jnp.swapaxes(vectors, 1, 2))
    # Matrices without small eigenvalues are returned unchanged, without rounding errors.
    return jnp.where((values[:, 0] < floor)[:, None, None], repaired, symmetric)


def _diagonal(variance: Array, covariance: str) -> Array:
    return jnp.diagonal(variance, axis1=1, axis2=2) if covariance == "full" else variance
