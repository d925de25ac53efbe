"""multicause: finds the hidden causes of data.

Each estimator is a probabilistic generative model: hidden causes are drawn from a prior, combine by a rule
into a mean, and noise turns the mean into the observation. Estimators are imported when first used, so that
``import multicause`` is fast and starts no compiler, thread or device.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from multicause.version import __version__ as __version__

_HOME = {
    "EnergyComponents": "multicause.models.energy_components",
    "FactorAnalysis": "multicause.models.factor_analysis",
    "HelmholtzMachine": "multicause.models.helmholtz_machine",
    "IndependentComponents": "multicause.models.independent_components",
    "KMeans": "multicause.models.k_means",
    "LinearCauses": "multicause.models.linear_causes",
    "MaximalCauses": "multicause.models.maximal_causes",
    "MixtureOfGaussians": "multicause.models.mixture_of_gaussians",
    "MixtureOfPoissons": "multicause.models.mixture_of_poissons",
    "NoisyOrCauses": "multicause.models.noisy_or_causes",
    "NonnegativeCauses": "multicause.models.nonnegative_causes",
    "OwnCauses": "multicause.models.own_causes",
    "PrincipalComponents": "multicause.models.principal_components",
    "RestrictedMaximalCauses": "multicause.models.restricted_maximal_causes",
    "SoftmaxNetwork": "multicause.models.softmax_network",
    "SparseCoding": "multicause.models.sparse_coding",
    "SpikeAndSlabCauses": "multicause.models.spike_and_slab_causes",
    "TruncatedAutoencoder": "multicause.models.truncated_autoencoder",
    "enable_compilation_cache": "multicause.runtime.compilation_cache",
    "fit_trials": "multicause.estimators.trials",
    "load": "multicause.persistence",
}

__all__ = [
    "EnergyComponents",
    "FactorAnalysis",
    "HelmholtzMachine",
    "IndependentComponents",
    "KMeans",
    "LinearCauses",
    "MaximalCauses",
    "MixtureOfGaussians",
    "MixtureOfPoissons",
    "NoisyOrCauses",
    "NonnegativeCauses",
    "OwnCauses",
    "PrincipalComponents",
    "RestrictedMaximalCauses",
    "SoftmaxNetwork",
    "SparseCoding",
    "SpikeAndSlabCauses",
    "TruncatedAutoencoder",
    "enable_compilation_cache",
    "fit_trials",
    "load",
]

if TYPE_CHECKING:
    from multicause.estimators.trials import fit_trials
    from multicause.models.energy_components import EnergyComponents
    from multicause.models.factor_analysis import FactorAnalysis
    from multicause.models.helmholtz_machine import HelmholtzMachine
    from multicause.models.independent_components import IndependentComponents
    from multicause.models.k_means import KMeans
    from multicause.models.linear_causes import LinearCauses
    from multicause.models.maximal_causes import MaximalCauses
    from multicause.models.mixture_of_gaussians import MixtureOfGaussians
    from multicause.models.mixture_of_poissons import MixtureOfPoissons
    from multicause.models.noisy_or_causes import NoisyOrCauses
    from multicause.models.nonnegative_causes import NonnegativeCauses
    from multicause.models.own_causes import OwnCauses
    from multicause.models.principal_components import PrincipalComponents
    from multicause.models.restricted_maximal_causes import RestrictedMaximalCauses
    from multicause.models.softmax_network import SoftmaxNetwork
    from multicause.models.sparse_coding import SparseCoding
    from multicause.models.spike_and_slab_causes import SpikeAndSlabCauses
    from multicause.models.truncated_autoencoder import TruncatedAutoencoder
    from multicause.persistence import load
    from multicause.runtime.compilation_cache import enable_compilation_cache


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'multicause' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
