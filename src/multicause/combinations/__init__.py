"""Combinations: rules by which active causes determine a mean."""

from multicause.combinations.base import Combination
from multicause.combinations.maximum import Maximum
from multicause.combinations.maximum_magnitude import MaximumMagnitude
from multicause.combinations.noisy_or import NoisyOr
from multicause.combinations.sum import Sum

__all__ = ["Combination", "Maximum", "MaximumMagnitude", "NoisyOr", "Sum"]
