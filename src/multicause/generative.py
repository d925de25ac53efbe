"""The generative side of a model, prior × combination × noise, which posteriors and updates work with."""

from multicause.combinations.base import Combination
from multicause.noises.base import Noise
from multicause.priors.base import Prior


class GenerativeModel:
    """The joint p(s, y) of causes and data; with a posterior and an update, it is a :class:`multicause.model.Model`."""

    prior: Prior
    combination: Combination
    noise: Noise
    #: Names of the parameters that are learned.
    learn: frozenset[str]
    #: Whether rows may contain NaN for missing values; programs for complete rows have no masks.
    missing: bool

    @property
    def linear(self) -> bool:
        """Whether states need no means: ‖y − Σ_h s_h W_h‖² follows from projections on single causes and pairs.

        It is False if values may be missing, because these projections would differ from row to row.
        """
        return self.sums_squares and not self.missing

    @property
    def sums_squares(self) -> bool:
        """Whether causes add up under noise that does not depend on the mean."""
        return self.combination.linear and self.noise.linear
