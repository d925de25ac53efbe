"""Updates of the components, and the choice among them."""

from multicause.learning.updates.base import Update
from multicause.learning.updates.coordinates import Coordinates
from multicause.learning.updates.credit import CreditMean
from multicause.learning.updates.delta_rule import DeltaRule
from multicause.learning.updates.gradient import Gradient
from multicause.learning.updates.least_squares import LeastSquares
from multicause.learning.updates.multiplicative import Multiplicative, MultiplicativeCounts
from multicause.learning.updates.natural_gradient import NaturalGradient
from multicause.learning.updates.normalized import NormalizedMean
from multicause.learning.updates.weighted_mean import WeightedMean

NAMES: dict[str, type] = {
    "coordinates": Coordinates,
    "least_squares": LeastSquares,
    "multiplicative": Multiplicative,
    "multiplicative_counts": MultiplicativeCounts,
    "credit": CreditMean,
    "gradient": Gradient,
    "normalized": NormalizedMean,
}

__all__ = [
    "NAMES",
    "Coordinates",
    "CreditMean",
    "DeltaRule",
    "Gradient",
    "LeastSquares",
    "Multiplicative",
    "MultiplicativeCounts",
    "NaturalGradient",
    "NormalizedMean",
    "Update",
    "WeightedMean",
]
