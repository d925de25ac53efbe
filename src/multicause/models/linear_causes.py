"""Linear causes: ET10 §4.3."""

from multicause.combinations import Combination, Sum
from multicause.estimator import CausalEstimator


class LinearCauses(CausalEstimator):
    """Binary causes that add up (LinCA)."""

    def _combination(self) -> Combination:
        return Sum()
