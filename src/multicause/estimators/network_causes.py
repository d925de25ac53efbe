"""Methods of a fitted model whose mean is computed by a decoder network."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause.arrays import Array, double_precision
from multicause.engines.missing import filled
from multicause.estimators import joint_inference as inference
from multicause.estimators.arguments import validate_causes, validate_n_samples
from multicause.estimators.gradient_causes import GradientCauses
from multicause.solvers.decoder_network import DecoderNetwork

# Hidden units of the default network for each cause. On patches of two parts of a noisy picture, two were better than
# one by 0.1 and 0.2 dB, and had higher bounds.
UNITS_PER_CAUSE = 2


class NetworkCauses(GradientCauses):
    """Base class of models with a decoder network: reconstruction, imputation and sampling."""

    layers: tuple[int, ...] | None
    activity_: np.ndarray
    noise_variance_: float

    def reconstruct(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the posterior mean of the data, X as explained by its causes: (n_samples, n_features).

        ``out`` is an array of that shape or the name of a ``.npy`` file, as in :meth:`transform`.
        """
        return self._by_rows(inference.mean_rows, X, out)

    def impute(self, X: ArrayLike) -> np.ndarray:
        """Return X with missing values, which are NaN, replaced by their posterior means: (n_samples, n_features)."""
        check_is_fitted(self)
        return filled(self._validate_rows(X, reset=False), self.reconstruct(X))

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the mean of the data for given causes (n_samples, n_components): (n_samples, n_features)."""
        check_is_fitted(self)
        return self._decoded(self.parameters_, validate_causes(S, int(self.n_components), self._fitted_dtype))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw new data from the model: rows (n_samples, n_features) and their causes (n_samples, n_components)."""
        check_is_fitted(self)
        n_rows = validate_n_samples(n_samples, sum(self.components_.shape), self._fitted_dtype)
        random = check_random_state(random_state)
        causes = (random.uniform(size=(n_rows, len(self.activity_))) < self.activity_).astype(self._fitted_dtype)
        means = self._decoded(self.parameters_, causes)
        noise = np.sqrt(self.noise_variance_) * random.normal(size=means.shape)
        return (means + noise).astype(means.dtype), causes

    def _decoded(self, parameters: Any, states: np.ndarray) -> np.ndarray:
        with double_precision():
            return np.asarray(_decoded(parameters, states))

    def _derived(self, parameters: Any) -> dict[str, Any]:
        shape = np.shape(parameters["log_odds"])
        alone = np.concatenate([np.zeros((1, *shape)), np.eye(*shape)]).astype(np.asarray(parameters["log_odds"]).dtype)
        means = self._decoded(parameters, alone)
        return {
            "components_": means[1:] - means[0],
            "activity_": np.asarray(1 / (1 + np.exp(-parameters["log_odds"]))),
            "noise_variance_": np.exp(parameters["log_variance"])[()],
        }

    def _hidden(self) -> list[int]:
        """Return the numbers of hidden units; raise ValueError if they are not positive integers."""
        layers = (UNITS_PER_CAUSE * int(self.n_components),) if self.layers is None else tuple(self.layers)
        if any(not isinstance(size, Integral) or isinstance(size, bool) or size < 1 for size in layers):
            raise ValueError(
                f"layers must be a tuple of numbers of hidden units, each at least 1, such as (64, 64); got "
                f"{self.layers!r}."
            )
        return [int(size) for size in layers]


@jax.jit
def _decoded(parameters: Any, states: Array) -> Array:
    return DecoderNetwork().decode(parameters, states)
