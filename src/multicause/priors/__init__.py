"""Priors: how causes are drawn."""

from multicause.priors.base import Prior
from multicause.priors.bernoulli import Bernoulli

NAMES: dict[str, type] = {"bernoulli": Bernoulli}

__all__ = ["NAMES", "Bernoulli", "Prior"]
