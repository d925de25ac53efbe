"""Base class of restricted maximal causes: Poisson noise, one fixed π, and components of equal sum C (MCA08 §4.2)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from multicause.combinations import Maximum
from multicause.em.initialization import InitialConditions
from multicause.engines import Local
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import POSITIVE
from multicause.model import Model, Parameters
from multicause.noises import Poisson
from multicause.posteriors import Truncated
from multicause.priors import Bernoulli
from multicause.search.restarts import with_more_states
from multicause.updates import NormalizedMean


class RestrictedCauses(CausalEstimator):
    """Base class of the restricted model, of which only the components are learned."""

    _constraints = {"total": [POSITIVE, None], "activity": [Interval(Real, 0, 1, closed="neither"), None]}

    # Constructor argument that only the restricted model has.
    total: float | None

    def _parts(self) -> Model:
        posterior = Truncated(2, empty_state=False, compensate=False)
        n_states, most = posterior.n_states(self.n_components), posterior.max_states
        if n_states > most:
            raise ValueError(
                f"{type(self).__name__} compares all pairs of causes: {n_states:,} states for n_components="
                f"{self.n_components}, more than {most:,}. Use fewer, or MaximalCauses, which selects candidates."
            )
        return Model(Bernoulli(), Maximum(), Poisson(), posterior, NormalizedMean(), learn=frozenset({"components"}))

    def _recognition_model(self, model: Model, n_components: int, n_features: int) -> Model:
        return with_more_states(model, n_components, n_features)

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return the default starts, scaled to the sum C. Rows of zeros cannot be scaled, so they are no starts."""
        X, weights = initial.data.look()
        starts = super()._starts(initial._replace(data=Local().load(X, weights * X.any(axis=1))))
        sums = starts.components.sum(axis=-1, keepdims=True)
        if not (np.asarray(sums) > 0).all():
            raise ValueError(
                "Every component in init needs a positive sum, because components are scaled to one sum; "
                f"component {int(np.argmin(np.asarray(sums)[0]))} is zero. Remove it, or use init='random'."
            )
        total = self._total(initial, starts)
        return starts._replace(components=starts.components * (total / sums).astype(starts.components.dtype))

    def _total(self, initial: InitialConditions, starts: Parameters) -> float:
        """Return C: the user's value, or the mean sum of a row divided by the expected number π·H of active causes.

        Causes occlude each other, so this is slightly less than the sum of a single cause; its scale does not affect
        which causes are found (MCA08 appendix E.1).
        """
        if self.total is not None:
            return float(self.total)
        expected = float(np.asarray(initial.model.prior.activity(starts.prior))[0].sum())
        return float(np.sum(initial.moments.mean)) / expected

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        return {"total_": float(np.sum(parameters.components[0]))}
