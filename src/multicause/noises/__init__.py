"""Noises: distributions of an observation given its mean."""

from multicause.noises.base import Noise
from multicause.noises.bernoulli import Bernoulli
from multicause.noises.clusters import ClusterGaussian
from multicause.noises.diagonal import DiagonalGaussian
from multicause.noises.gaussian import Gaussian
from multicause.noises.leaky_bernoulli import LeakyBernoulli
from multicause.noises.logistic import LogisticBernoulli
from multicause.noises.noiseless import Noiseless
from multicause.noises.poisson import Poisson

NAMES: dict[str, type] = {
    "gaussian": Gaussian,
    "diagonal_gaussian": DiagonalGaussian,
    "poisson": Poisson,
    "bernoulli": Bernoulli,
    "leaky_bernoulli": LeakyBernoulli,
}

__all__ = [
    "NAMES",
    "Bernoulli",
    "ClusterGaussian",
    "DiagonalGaussian",
    "Gaussian",
    "LeakyBernoulli",
    "LogisticBernoulli",
    "Noise",
    "Noiseless",
    "Poisson",
]
