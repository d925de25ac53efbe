"""Updates of the components in the M-step, and their names."""

from multicause.updates.activation_shares import ActivationShares
from multicause.updates.base import Update
from multicause.updates.coordinates import Coordinates
from multicause.updates.credit import CreditMean
from multicause.updates.delta_rule import DeltaRule
from multicause.updates.gradient import Gradient
from multicause.updates.least_squares import LeastSquares
from multicause.updates.multiplicative import Multiplicative, MultiplicativeCounts
from multicause.updates.natural_gradient import NaturalGradient
from multicause.updates.normalized import NormalizedMean
from multicause.updates.wake_sleep import WakeSleep
from multicause.updates.weighted_mean import WeightedMean

NAMES: dict[str, type] = {
    "coordinates": Coordinates,
    "least_squares": LeastSquares,
    "multiplicative": Multiplicative,
    "multiplicative_counts": MultiplicativeCounts,
    "credit": CreditMean,
    "gradient": Gradient,
    "normalized": NormalizedMean,
    "activation_shares": ActivationShares,
}

__all__ = [
    "NAMES",
    "ActivationShares",
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
    "WakeSleep",
    "WeightedMean",
]
