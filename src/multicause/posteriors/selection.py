"""Selection functions: cheap scores that say which causes may have made a row (ET10 §2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, sum_over_features
from multicause.parts import Part

if TYPE_CHECKING:
    from multicause.model import Model, Parameters


class Selection(Part):
    """Scores of all causes for some rows; only their order within a row matters."""

    #: Whether only components that are not negative can be scored.
    nonnegative = False
    #: Whether scores are numbers for every row; where they may be NaN, such rows end learning with a named outcome.
    reliable = True

    @abstractmethod
    def scores(self, model: Model, parameters: Parameters, rows: Array, products: Array) -> Array:
        """S_h(y) of rows (n, D): (H, n). ``products`` are η(W_h)·y of every cause and row: (H, n).

        With ``model.missing``, rows have NaN for values that were not observed, and products leave them out.
        """


class UpperBound(Selection):
    """S_h(y) = π_h p(y | max{y, W_h}) ≥ p(s_h = 1, y), for components that are not negative: ET10 eq. 28.

    Means only grow with every further cause, so the best that any state with cause h can do is to reach y where W_h is
    below it. Holds for every noise whose likelihood has one peak, at w = y.
    """

    nonnegative = True

    def scores(self, model: Model, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Σ_d of log p(y_d | W_hd) where W_hd exceeds y_d, relative to the peak, plus log π_h."""
        components = parameters.components
        of_features, shared = model.noise.split_parameters(parameters.noise)

        def of_feature(weights: Array, values: Array, own: dict[str, Array]) -> Array:
            found = model.noise.overshoot(weights[:, None], values[None, :], shared | own)
            return jnp.where(jnp.isnan(values), 0, found) if model.missing else found

        zero = jnp.zeros((components.shape[0], rows.shape[0]), rows.dtype)
        total = sum_over_features(of_feature, zero, components.T, rows.T, of_features)
        return total + jnp.log(model.prior.activity(parameters.prior))[:, None]


class ScalarProduct(Selection):
    """S_h(y) = W_h·y / |W_h|, for components of any sign: ET10 eq. 33 (|y|, the same for all causes, is left out)."""

    def scores(self, model: Model, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Return scores in units of the noise where it does not depend on the mean: products η(W)·y serve then."""
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
        return products / jnp.maximum(lengths, jnp.finfo(lengths.dtype).tiny)


class ByFunction(Selection):
    """A user's own selection: ``function(rows (n, D), components (H, D))`` gives scores (n, H), in JAX.

    Parameters
    ----------
    function : callable
        Pure and traceable by JAX, that is, written with ``jax.numpy``.
    """

    reliable = False

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def scores(self, model: Model, parameters: Parameters, rows: Array, products: Array) -> Array:
        """Whatever the user says of rows with zeros in place of missing values."""
        rows = jnp.where(jnp.isnan(rows), 0, rows) if model.missing else rows
        return jnp.asarray(self.function(rows, parameters.components)).T

    def try_out(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if the function does not give a finite score for each row and cause."""
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
