"""Base class of models of binary causes whose parts a user may choose freely."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.combinations import Combination
from multicause.engines import Engine
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import LEARNABLE
from multicause.noises import Noise
from multicause.posteriors import Posterior
from multicause.priors import Prior
from multicause.updates import Update


class BinaryCauses(CausalEstimator):
    """Constructor that models of binary causes share. A named model adds its combination, equations and reference."""

    def __init__(
        self,
        n_components: int = 10,
        *,
        noise: str | Noise = "gaussian",
        combination: Combination | None = None,
        prior: str | Prior | None = None,
        posterior: str | Posterior | None = None,
        update: str | Update | None = None,
        annealing: str | Annealing | None = "auto",
        learn: tuple[str, ...] = LEARNABLE,
        activity: float | ArrayLike | None = None,
        noise_scale: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        repair: bool | None = None,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.noise = noise
        self.combination = combination
        self.prior = prior
        self.posterior = posterior
        self.update = update
        self.annealing = annealing
        self.learn = learn
        self.activity = activity
        self.noise_scale = noise_scale
        self.max_iter = max_iter
        self.tol = tol
        self.repair = repair
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine
