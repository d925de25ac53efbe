"""Base class of restricted maximal causes: Poisson noise, one fixed π, and components of equal sum C (MCA08 §4.2)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from multicause.combinations import Maximum
from multicause.engines import Local
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import POSITIVE
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.scaling import with_equal_sums
from multicause.model import Model
from multicause.noises import Poisson
from multicause.posteriors import Truncated
from multicause.priors import Bernoulli
from multicause.records import Parameters
from multicause.runtime.scikit_learn import Interval
from multicause.updates import NormalizedMean


class RestrictedCauses(CausalEstimator):
    """Base class of the restricted model, of which only the components are learned."""

    _constraints = {"total": [POSITIVE], "activity": [Interval(Real, 0, 1, closed="neither")]}

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

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return the default starts, scaled to the sum C. Rows of zeros cannot be scaled, so they are no starts."""
        X, weights = initial.data.look()
        starts = super()._starts(initial._replace(data=Local().load(X, weights * X.any(axis=1))))
        return with_equal_sums(starts, initial, self.total)

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        return {"total_": float(np.sum(parameters.components[0]))}
