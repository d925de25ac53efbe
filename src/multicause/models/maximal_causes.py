"""Maximal causes: MCA08 and ET10 §4.2."""

from multicause.combinations import Combination, Maximum
from multicause.estimator import CausalEstimator


class MaximalCauses(CausalEstimator):
    """Maximal Causes Analysis."""

    def _combination(self) -> Combination:
        return Maximum()
