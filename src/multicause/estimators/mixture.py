"""Base class of mixtures: methods of fitted models, and initial means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.estimators.causal import CausalEstimator
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.means import starting_means
from multicause.records import Parameters


class Mixture(CausalEstimator):
    """Base class of models in which each row has exactly one cause, with means as components."""

    # Constructor argument that all mixtures have.
    init: str | ArrayLike

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the index of the cause with the highest responsibility for each row: (n_samples,)."""
        return np.argmax(self.score_single_causes(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return P[v|u], the responsibility of each cause for each row: (n_samples, n_components)."""
        return self.transform(X)

    def fit_predict(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Fit the model to X, and return the index of the most responsible cause of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _starts(self, initial: InitialConditions) -> Parameters:
        starts = starting_means(initial, self.n_components, self.init, self._starts_from)
        if isinstance(self.init, str) or hasattr(self.init, "fit"):
            return starts  # rows, or another model's components, are prepared already
        components: Any = self._preparer().prepare_components(dict(initial.record), np.asarray(starts.components))
        return starts._replace(components=components)
