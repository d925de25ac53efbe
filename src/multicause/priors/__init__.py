"""Priors: distributions of the hidden causes."""

from multicause.priors.base import Prior
from multicause.priors.bernoulli import Bernoulli
from multicause.priors.categorical import Categorical
from multicause.priors.continuous import Cauchy, Continuous, Gaussian, HyperbolicSecant, Laplace, SubGaussian
from multicause.priors.graded import Graded, Ternary
from multicause.priors.layered import Layered
from multicause.priors.spike_and_slab import SpikeAndSlab

NAMES: dict[str, type] = {"bernoulli": Bernoulli, "ternary": Ternary, "graded": Graded}

__all__ = [
    "NAMES",
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Continuous",
    "Gaussian",
    "Graded",
    "HyperbolicSecant",
    "Laplace",
    "Layered",
    "Prior",
    "SpikeAndSlab",
    "SubGaussian",
    "Ternary",
]
