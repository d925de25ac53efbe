"""Selection functions: cheap scores of how well a cause may explain a row (ET10 §2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, sum_over_features
from multicause.generative import GenerativeModel
from multicause.parts import Part
from multicause.records import Parameters

# Length of a component, relative to the longest one, up to which it counts as zero: it is no candidate then.
LEAST_LENGTH = 1e-6


class Selection(Part):
    """Scores of all causes for some rows, of which only the order within a row matters."""

    #: Whether components must be non-negative.
    nonnegative = False
    #: Whether scores are never NaN; otherwise a row with NaN ends learning with the outcome "non_finite".
    reliable = True

    @abstractmethod
    def scores(self, model: GenerativeModel, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Return S_h(y) of rows (n, D): (H, n). ``products`` are η(W_h)·y of every cause and row: (H, n).

        With ``model.missing``, rows have NaN for missing values, and products leave them out.
        """

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if a function given by the user fails on some rows; by default there is none."""
        return


class UpperBound(Selection):
    """The score S_h(y) = π_h p(y | max{y, W_h}) ≥ p(s_h = 1, y), for non-negative components: ET10 eq. 28.

    Means only grow with every further cause, so a state with cause h can at best reach y where W_h is below it. The
    bound holds for every noise whose likelihood has one peak, at w = y.
    """

    nonnegative = True

    def scores(self, model: GenerativeModel, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Return Σ_d of log p(y_d | W_hd) where W_hd exceeds y_d, relative to the peak, plus log π_h."""
        components = parameters.components
        of_features, shared = model.noise.split_parameters(parameters.noise)

        def of_feature(weights: Array, values: Array, own: dict[str, Array]) -> Array:
            overshoot = model.noise.overshoot(weights[:, None], values[None, :], shared | own)
            return jnp.where(jnp.isnan(values), 0, overshoot) if model.missing else overshoot

        zero = jnp.zeros((components.shape[0], rows.shape[0]), rows.dtype)
        total = sum_over_features(of_feature, zero, components.T, rows.T, of_features)
        return total + jnp.log(model.prior.activity(parameters.prior))[:, None]


class ScalarProduct(Selection):
    """The score S_h(y) = W_h·y / |W_h|, for components of any sign: ET10 eq. 33 without |y|, common to all causes."""

    def scores(self, model: GenerativeModel, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Return scores in units of the noise if it does not depend on the mean, using the products η(W)·y."""
        components = parameters.components
        if model.noise.linear:
            components = model.noise.standardize(components, parameters.noise)
        else:
            products = matmul(components, (jnp.where(jnp.isnan(rows), 0, rows) if model.missing else rows).T)
        if model.missing:
            # Lengths are those in the observed dimensions of each row.
            lengths = jnp.sqrt(matmul(components**2, (~jnp.isnan(rows)).astype(rows.dtype).T))
        else:
            lengths = jnp.linalg.norm(components, axis=1)[:, None]
        # Products with a component of nearly no length are rounding errors, which a division would make the largest.
        some = lengths > LEAST_LENGTH * jnp.max(lengths, axis=0)
        return jnp.where(some, products / jnp.where(some, lengths, 1), -jnp.inf)


class ByFunction(Selection):
    """Selection by a user's function ``function(rows (n, D), components (H, D))`` that returns scores (n, H), in JAX.

    Parameters
    ----------
    function : callable
        Pure and traceable by JAX, that is, written with ``jax.numpy``.
    """

    reliable = False

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def scores(self, model: GenerativeModel, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Return the scores of the user's function, for rows with zeros in place of missing values."""
        rows = jnp.where(jnp.isnan(rows), 0, rows) if model.missing else rows
        return jnp.asarray(self.function(rows, parameters.components)).T

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if the function does not return a score for each row and cause, without NaN."""
        expected = (len(rows), len(components))
        what = "The selection function must take rows and components, arrays (n, D) and (H, D), and return scores"
        try:
            scores = np.asarray(self.function(jnp.asarray(rows), jnp.asarray(components)))
        except Exception as error:
            raise ValueError(f"{what} (n, H); it failed with {type(error).__name__}: {error}.") from error
        try:
            jax.eval_shape(self.function, jnp.asarray(rows), jnp.asarray(components))
        except Exception as error:
            raise ValueError(
                f"{what}, and be written with jax.numpy, so that it can be compiled; tracing it failed with "
                f"{type(error).__name__}: {str(error).splitlines()[0]}"
            ) from error
        if scores.shape != expected:
            raise ValueError(f"{what} of shape {expected}; got {scores.shape}. Is its result transposed?")
        if np.isnan(scores).any():
            raise ValueError(f"{what} without NaN; {np.isnan(scores).sum()} of {scores.size} were NaN.")


NAMES: dict[str, type] = {"upper_bound": UpperBound, "scalar_product": ScalarProduct}
