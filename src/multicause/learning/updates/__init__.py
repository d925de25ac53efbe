"""Updates of the components, and the choice among them."""

from multicause.learning.updates.base import Update
from multicause.learning.updates.coordinates import Coordinates
from multicause.learning.updates.credit import CreditMean
from multicause.learning.updates.gradient import Gradient
from multicause.learning.updates.least_squares import LeastSquares
from multicause.learning.updates.multiplicative import Multiplicative, MultiplicativeCounts
from multicause.learning.updates.normalized import NormalizedMean

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
    "Gradient",
    "LeastSquares",
    "Multiplicative",
    "MultiplicativeCounts",
    "NormalizedMean",
    "Update",
]
