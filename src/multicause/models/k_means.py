"""K-means: the limit of a mixture of Gaussians as the variance goes to zero.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.combinations import Sum
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.mixture import Mixture
from multicause.inference import inertia
from multicause.model import Model
from multicause.noises import Gaussian
from multicause.posteriors import OneHot
from multicause.preparation.base import Preparation
from multicause.preparation.centred import Centred
from multicause.priors import Categorical
from multicause.search.em import EM
from multicause.updates.weighted_mean import WeightedMean


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

    inertia_: float

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

    def _parts(self) -> Model:
        parts = (Categorical(uniform=True), Sum(), Gaussian(), OneHot(hard=True), WeightedMean())
        return Model(*parts, learn=frozenset({"components", "noise"}))

    def _preparer(self) -> Preparation:
        return Centred()

    def _solver(self) -> Solver:
        return EM(max_iter=self.max_iter, tol=self.tol, n_starts=self.n_init, measures={"inertia_": inertia})

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the centres weighted by S (n_samples, n_components): (n_samples, n_features)."""
        around = super().inverse_transform(S)
        others = 1 - np.sum(S, axis=1, keepdims=True, dtype=float)
        return (around - others * self._preparation["origin"]).astype(around.dtype)
