"""A small problem of bars that all tests of search share, and with it its programs."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from multicause import LinearCauses, MaximalCauses
from multicause.annealing import NoAnnealing
from multicause.arrays import double_precision
from multicause.em.loop import learn, learn_all
from multicause.em.results import one_start
from multicause.engines import Local
from multicause.inference import arrange
from multicause.noises import Poisson
from multicause.records import Parameters

# Three bars that do not overlap, each of two pixels.
CAUSES = np.kron(np.eye(3), np.full(2, 8.0))


@dataclass(frozen=True)
class Problem:
    """A wired model, its data in one block, and the settings of loops."""

    model: Any
    data: Any
    rows: np.ndarray

    def parameters(self, components: np.ndarray, activity: float = 1 / 3) -> Parameters:
        """Parameters with these components and equal activities."""
        gaussian = {"variance": np.array(1.0), "floor": np.array(1e-6), "origin": self.rows.mean(axis=0)}
        noise = {} if isinstance(self.model.noise, Poisson) else gaussian
        prior = {"activity": np.full(len(components), activity)}
        return Parameters(np.asarray(components, dtype=float), prior, noise, self.model.posterior.initialize())

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that every loop takes; four places for starts, so that all loops share one program."""
        return {"tol": 1e-4, "key": jax.random.key(0), "places": 4}

    def fit(self, components: np.ndarray, max_iter: int = 100, **settings: Any) -> Any:
        """Plain EM from one start."""
        starts = one_start(self.parameters(components))
        return self.learn(learn, starts, max_iter, **settings)

    def fit_all(self, components: list[np.ndarray], max_iter: int = 100, **settings: Any) -> Any:
        """Plain EM from several starts."""
        starts = [self.parameters(each) for each in components]
        return self.learn(learn_all, jax.tree.map(lambda *leaves: np.stack(leaves), *starts), max_iter, **settings)

    def learn(self, loop: Any, starts: Parameters, max_iter: int, **settings: Any) -> Any:
        """One of the loops of EM, without annealing."""
        with double_precision():
            settings = {"annealing": NoAnnealing(), **self.settings, **settings}
            return loop(self.model, self.data, starts, max_iter=max_iter, **settings)


@cache
def problem(kind: str = "max", n_rows: int = 120) -> Problem:
    """Rows of bars under the max rule and Poisson noise, or of sums and Gaussian noise."""
    random = np.random.RandomState(0)
    states = random.uniform(size=(n_rows, 3)) < 1 / 3
    estimator: Any
    if kind == "max":
        rows = random.poisson((states[:, :, None] * CAUSES).max(axis=1) + 0.05).astype(float)
        estimator = MaximalCauses(3, noise="poisson")
    else:
        rows = states @ CAUSES + random.normal(size=(n_rows, 6))
        estimator = LinearCauses(3)
    with double_precision():
        loaded = Local().load(rows)
        model = estimator._wire(loaded)
        return Problem(model, arrange(model, loaded, estimator.n_components, 4), rows)
