"""The models on which every law runs. A new model joins by one line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.datasets import make_bars
from multicause.posteriors import Preselected
from multicause.priors import Bernoulli

CAUSES = 3


@dataclass(frozen=True)
class Configuration:
    """A model with settings, data that suit it, and how its parts are called in the oracle."""

    name: str
    estimator: Callable[..., Any]
    combination: str
    noise: str
    data: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, **changes: Any) -> Any:
        """An estimator, by default of a few iterations of plain EM from seed 0."""
        defaults = {"n_components": CAUSES, "noise": self.noise, "random_state": 0, "max_iter": 8, "annealing": None}
        return self.estimator(**(defaults | self.settings | changes))

    def rows(self, seed: int = 0, n: int = 40) -> np.ndarray:
        """Small images of bars: (n, 9)."""
        return make_bars(n, size=3, value=6.0, random_state=seed, **self.data).data

    def __str__(self) -> str:
        return self.name


def repetitions(seed: int) -> np.ndarray:
    """Weights of forty rows, zero to three each.

    Their sum of 38 differs from the number of rows, and is rounded up to it, so that rows that are repeated as often
    run the same programs.
    """
    return np.random.RandomState(seed).permutation([*np.tile([0, 0, 0, 1, 2, 3], 6), 0, 0, 1, 1])


COUNTS = {"noise": "poisson"}
SUMS = {"noise": "gaussian", "combination": "sum", "noise_scale": 1.0}

# Preselection that leaves nothing out must obey every law of the exact posterior.
EVERY = Preselected(CAUSES, CAUSES, keep=None)

CONFIGURATIONS = [
    Configuration("maximal-poisson", MaximalCauses, "max", "poisson", COUNTS),
    Configuration("maximal-gaussian", MaximalCauses, "max", "gaussian", {"noise": "gaussian"}),
    Configuration("maximal-shared", MaximalCauses, "max", "poisson", COUNTS, {"prior": Bernoulli(shared=True)}),
    Configuration("maximal-gradient", MaximalCauses, "max", "poisson", COUNTS, {"update": "gradient"}),
    Configuration("linear-gaussian", LinearCauses, "sum", "gaussian", SUMS),
    Configuration("linear-signed", LinearCauses, "sum", "gaussian", {"kind": "signed", "noise": "gaussian"}),
    Configuration("linear-gradient", LinearCauses, "sum", "gaussian", SUMS, {"update": "gradient"}),
    Configuration("nonnegative", NonnegativeCauses, "sum", "gaussian", SUMS),
    Configuration("maximal-selected", MaximalCauses, "max", "gaussian", {"noise": "gaussian"}, {"posterior": EVERY}),
    Configuration("linear-selected", LinearCauses, "sum", "gaussian", SUMS, {"posterior": EVERY}),
    Configuration("linear-poisson", LinearCauses, "sum", "poisson", COUNTS | {"combination": "sum"}),
]
