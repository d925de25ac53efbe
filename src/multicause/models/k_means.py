"""K-means: the limit of a mixture of Gaussians as the variance goes to zero.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.arrays import Array, compiled, sum_in_double
from multicause.em.initialization import InitialConditions
from multicause.em.results import FitResult
from multicause.engines import Data, Engine
from multicause.estimators.causal import FitProblem
from multicause.estimators.summary import ModelSummary
from multicause.model import Block, Model, Parameters
from multicause.models.mixtures import Mixture
from multicause.noises import Gaussian, Noise
from multicause.posteriors import OneHot
from multicause.preparation.moments import check_variation
from multicause.priors import Categorical


class KMeans(Mixture):
    """K-means clustering: each row belongs to the nearest centre, and each centre is the mean of its rows.

    TN10 §10.3: a mixture of Gaussians with equal proportions γ_v = 1/K and one common variance Σ → 0, in which
    P[v | u] becomes 0 or 1. The assignment of rows does not depend on Σ, so the model keeps the maximum-likelihood
    estimate of Σ and F = ⟨log p[v(u), u]⟩ (eq. 10.14) stays finite: at the end it is a function of the inertia alone.

    Parameters
    ----------
    n_components : int, default=8
        Number K of centres.
    max_iter, n_init, init, random_state, verbose, engine
        As for :class:`multicause.MixtureOfGaussians`.
    tol : float, default=1e-10
        Learning has converged when F per row rises by less than this per iteration; with the default, nearly always
        when assignments no longer change.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Cluster centres.
    inertia_ : float
        Σ_n w_n ‖u_n − g_v(u_n)‖² over the observed values of the training data.
    noise_variance_ : float
        Mean squared distance to the centre, per dimension.
    lower_bound_, lower_bounds_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; the bound is F.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import KMeans
    >>> X = np.array([[0.0, 0], [0, 1], [9, 9], [9, 8]])
    >>> round(KMeans(2, random_state=0).fit(X).inertia_, 6)
    1.0
    """

    _parameter_constraints: dict[str, list[Any]] = {
        name: Mixture._parameter_constraints[name]
        for name in ("n_components", "max_iter", "tol", "n_init", "init", "random_state", "verbose", "engine")
    }
    summary = ModelSummary(
        "P[v] = 1/K; p[u|v] = N(u; g_v, Σ), Σ → 0",
        "v(u) = argmin_v |u − g_v|²",
        "g_v = mean of the rows with v(u) = v",
    )
    annealing = None
    learn = ("components", "noise")
    activity = None
    inertia_: float
    _results = ("inertia_",)

    def __init__(
        self,
        n_components: int = 8,
        *,
        max_iter: int = 300,
        tol: float = 1e-10,
        n_init: int = 1,
        init: str | ArrayLike = "kmeans++",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _noise(self) -> Noise:
        return Gaussian()

    def _prior(self) -> Categorical:
        return Categorical(uniform=True)

    def _posterior(self) -> OneHot:
        return OneHot(hard=True)

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the centres weighted by S (n_samples, n_components): (n_samples, n_features)."""
        around = super().inverse_transform(S)
        others = 1 - np.sum(S, axis=1, keepdims=True, dtype=float)
        return (around - others * self._preparation["origin"]).astype(around.dtype)

    # Rows are centred, because squared distances are computed in expanded form and a large offset would cancel digits.

    def _prepare(self, data: Data) -> dict[str, np.ndarray]:
        check_variation(data)
        return {"origin": data.overview.mean.astype(data.dtype)}

    @staticmethod
    def _prepared(record: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        return rows - record["origin"].astype(rows.dtype, copy=False)

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        return rows + self._preparation["origin"].astype(rows.dtype, copy=False)

    def _starts(self, initial: InitialConditions) -> Parameters:
        starts = super()._starts(initial)
        of_the_user = not (isinstance(self.init, str) or hasattr(self.init, "fit"))
        return starts._replace(components=starts.components - self._preparation["origin"]) if of_the_user else starts

    def _learn(self, problem: FitProblem) -> tuple[FitResult, Annealing]:
        result, annealing = super()._learn(problem)
        self.inertia_ = float(problem.data.sum(partial(_inertia, problem.model), result.parameters))
        return result, annealing

    def _learned(self, model: Model, parameters: Parameters) -> dict[str, Any]:  # type: ignore[override]
        learned = super()._learned(model, parameters)
        return {**learned, "components_": self._unprepared(learned["components_"])}


@compiled
def _inertia(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return Σ_n w_n ‖u_n − g_v(u_n)‖² of a block, computed from differences.

    The expanded form could become negative by cancellation.
    """
    nearest = jnp.argmax(model.posterior.infer(model, parameters, block, jnp.ones(())).mean_causes, axis=1)
    apart = block.rows - parameters.components[nearest]
    apart = jnp.where(jnp.isnan(apart), 0, apart) if model.missing else apart
    return sum_in_double(block.weights * jnp.sum(apart**2, axis=1))
