"""Non-negative causes: hidden binary causes with non-negative components that add up.

ET10: J. Lücke and J. Eggert, Expectation Truncation and the Benefits of Preselection in Training Generative Models,
JMLR 11 (2010) 2855–2900.
"""

from multicause.combinations import Combination, Sum
from multicause.estimator import CausalEstimator
from multicause.noises import Noise
from multicause.parts import resolve


class NonnegativeCauses(CausalEstimator):
    """Probabilistic non-negative matrix factorisation with binary causes (ET-NMF)."""

    def _combination(self, noise: Noise) -> Combination:
        return resolve(self.combination or Sum(nonnegative=True), {}, "combination", Sum)
