"""Base class of factor analysis and principal components, with the methods of fitted models."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multicause.estimators.fields import ProjectiveFields
from multicause.initialization.conditions import InitialConditions
from multicause.preparation.base import Preparation
from multicause.preparation.condensed import Condensed
from multicause.records import Parameters


class GaussianFactors(ProjectiveFields):
    """Base class of models of Gaussian causes that add up, which learn from mean and covariance of the data."""

    mean_: np.ndarray

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W with v = W·(u − mean), by which each cause is inferred: (n_components, n_features)."""
        check_is_fitted(self)
        return self._recognition()[0]

    def _recognition(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the recognition weights W and the posterior covariance Ψ of TN10's appendix, in NumPy."""
        G, scale = np.asarray(self.components_, dtype=float), np.asarray(self.activity_, dtype=float)
        natural = G / np.asarray(self.noise_variance_, dtype=float)
        prior = 0 if self._model.posterior.limit else np.diag(scale**-2)
        covariance = np.linalg.inv(prior + natural @ G.T)
        return (covariance @ natural).astype(self.components_.dtype), covariance

    def _preparer(self) -> Preparation:
        return Condensed()

    def _starts(self, initial: InitialConditions) -> Parameters:
        n_features = initial.data.n_features
        if self.n_components > n_features:
            raise ValueError(
                f"{type(self).__name__} describes data by fewer causes than features: n_components="
                f"{self.n_components}, but X has {n_features} features. Lower n_components to at most {n_features}."
            )
        return super()._starts(initial)
