"""Models with other than binary causes on which the common laws run, such as mixtures and factor analysis."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multicause import (
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    MixtureOfGaussians,
    PrincipalComponents,
    SparseCoding,
    SpikeAndSlabCauses,
)
from multicause.datasets import make_bars
from multicause.posteriors import Beam, MostProbable
from tests.laws.configurations import CAUSES


def bars(noise: str) -> Callable[[int, int], np.ndarray]:
    """Small images of bars: (n, 9)."""
    return lambda seed, n: make_bars(n, size=3, value=6.0, noise=noise, noise_scale=1.0, random_state=seed).data


@dataclass(frozen=True)
class Classical:
    """A model with settings, and data that suit it."""

    name: str
    estimator: Callable[..., Any]
    data: Callable[[int, int], np.ndarray]
    settings: dict[str, Any] = field(default_factory=dict)
    noise: str = "gaussian"

    def make(self, **changes: Any) -> Any:
        """An estimator of a few iterations from seed 0; settings that it does not have are left out."""
        known = self.estimator().get_params()
        defaults = {"n_components": CAUSES, "random_state": 0, "max_iter": 8}
        return self.estimator(**{k: v for k, v in (defaults | self.settings | changes).items() if k in known})

    def rows(self, seed: int = 0, n: int = 40) -> np.ndarray:
        """Data: (n, 9)."""
        return self.data(seed, n)

    def __str__(self) -> str:
        return self.name


def binary(seed: int, n: int) -> np.ndarray:
    """Bars of zeros and ones: (n, 9)."""
    return make_bars(n, size=3, value=1.0, noise=None, random_state=seed).data


IMAGES = bars("gaussian")

CLASSICAL = [
    Classical("mixture-spherical", MixtureOfGaussians, IMAGES),
    Classical("k-means", KMeans, IMAGES),
    Classical("factor-analysis", FactorAnalysis, IMAGES),
    Classical("principal-components", PrincipalComponents, IMAGES),
    Classical("sparse-coding", SparseCoding, IMAGES, {"tol": 0.0, "posterior": MostProbable(tol=1e-11)}),
    Classical("independent-components", IndependentComponents, IMAGES, {"tol": 1e-12}),
    Classical("spike-and-slab", SpikeAndSlabCauses, IMAGES, {"posterior": "exact", "annealing": None, "tol": 1e-9}),
    Classical("spike-and-slab-beam", SpikeAndSlabCauses, IMAGES, {"posterior": Beam(2, 2), "tol": 1e-9}),
    Classical("helmholtz-machine", HelmholtzMachine, binary, {"tol": 0.0}),
]
