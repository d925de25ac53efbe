"""Noises: how a mean becomes an observation."""

from multicause.noises.base import Noise
from multicause.noises.gaussian import Gaussian
from multicause.noises.poisson import Poisson

NAMES: dict[str, type] = {"gaussian": Gaussian, "poisson": Poisson}

__all__ = ["NAMES", "Gaussian", "Noise", "Poisson"]
