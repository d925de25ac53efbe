"""Projective and receptive fields of the models of TN10: how causes act on data, and how they are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from multicause.estimators.base import ValueLabels
from multicause.estimators.causal import CausalEstimator
from multicause.records import Parameters


class ProjectiveFields(CausalEstimator):
    """Base class of models whose components are projective fields."""

    @property
    def projective_fields_(self) -> np.ndarray:
        """Projective fields G, the effect of each cause on the data: (n_components, n_features)."""
        return self.components_


class UnmixingFields(ProjectiveFields):
    """Base class of noiseless models of whitened data, whose causes are a linear map of the data."""

    mean_: np.ndarray

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W with v = W·(u − mean), the filters that compute causes: (n_components, n_features)."""
        W = np.linalg.inv(self._parameters.components.astype(float)).T @ self._preparation["forward"]
        return W.astype(self.components_.dtype)

    def value_labels(self) -> ValueLabels:
        """Return labels of the bound, which name the projection on principal axes if not all axes are kept."""
        n_kept, n_features = self.components_.shape
        part = "" if n_kept == n_features else f" of the projection on {n_kept} principal axes"
        return ValueLabels(*(label + part for label in super().value_labels()))


class NetworkFields(ProjectiveFields):
    """Base class of generative networks of logistic units with a recognition network."""

    bias_: np.ndarray

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W, the recognition weights: (n_components, n_features)."""
        return np.asarray(self._parameters.posterior["weights_0"]).T

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the probability that each dimension is one, given causes (n_samples, n_components)."""
        logits = super().inverse_transform(S)
        return expit(logits + self.bias_).astype(logits.dtype)

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        return {"bias_": np.array(parameters.noise["bias"])}
