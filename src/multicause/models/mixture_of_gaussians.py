"""Mixture of Gaussians: each row belongs to one of several clusters.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.combinations import Sum
from multicause.engines import Engine
from multicause.estimators.mixture import Mixture
from multicause.estimators.settings import LEARNABLE, NOT_NEGATIVE, check_learn
from multicause.model import Model
from multicause.noises import ClusterGaussian
from multicause.noises.clusters import COVARIANCES
from multicause.posteriors import OneHot
from multicause.priors import Categorical
from multicause.runtime.scikit_learn import Options
from multicause.updates.weighted_mean import WeightedMean


class MixtureOfGaussians(Mixture):
    """A mixture of Gaussians: clusters, each with its own mean and covariance.

    TN10 eq. 10.15–10.17::

        P[v] = γ_v
        p[u | v] = N(u; g_v, Σ_v)
        P[v | u] ∝ γ_v N(u; g_v, Σ_v)

    EM alternates between computing responsibilities P[v | u] and means, covariances and proportions weighted by them
    (eq. 10.3). The bound is the log-likelihood and never falls. The limit of one common variance that goes to zero is
    K-means (:class:`multicause.KMeans`).

    Parameters
    ----------
    n_components : int, default=2
        Number H of clusters.
    covariance : {"spherical", "diagonal", "full"}, default="spherical"
        Form of Σ_v: one variance, as in the chapter, one for each dimension, or any covariance matrix.
    min_variance : float, optional
        Regularization: the smallest variance in any direction; by default a millionth of the data's variance.
    annealing : "auto", None or Annealing, default=None
        As for :class:`multicause.MaximalCauses`; None is plain EM.
    learn : tuple of str, default=("components", "activity", "noise")
        Which of means, proportions and covariances are learned.
    activity : array-like of shape (n_components,), optional
        Initial (or fixed) proportions; by default equal.
    noise_scale : float, optional
        Initial (or fixed) standard deviation of all clusters; by default that of the data.
    max_iter, n_init, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.
    tol : float, default=1e-6
        Learning has converged when the mean log-likelihood per row rises by less than this per iteration.
    init : {"kmeans++", "random", "data"} or array-like of shape (n_components, n_features), default="kmeans++"
        Initial means: rows that are far from each other, random rows ("random" and "data"), or a given array.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Means g.
    activity_ : ndarray of shape (n_components,)
        Proportions γ.
    noise_variance_ : ndarray of shape (n_components, ...)
        Σ of each cluster: a number, (n_features,) or (n_features, n_features), depending on ``covariance``.
    lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> random = np.random.RandomState(0)
    >>> X = np.concatenate([random.normal([0, 1], 0.2, (20, 2)), random.normal([1, 0], 0.2, (20, 2))])
    >>> MixtureOfGaussians(2, random_state=0).fit(X).components_.round().astype(int).tolist()
    [[1, 0], [0, 1]]
    """

    _constraints = {"covariance": [Options(str, set(COVARIANCES))], "min_variance": [NOT_NEGATIVE]}

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance: str = "spherical",
        min_variance: float | None = None,
        annealing: str | Annealing | None = None,
        learn: tuple[str, ...] = LEARNABLE,
        activity: ArrayLike | None = None,
        noise_scale: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_init: int = 1,
        init: str | ArrayLike = "kmeans++",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.min_variance = min_variance
        self.annealing = annealing
        self.learn = learn
        self.activity = activity
        self.noise_scale = noise_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _parts(self) -> Model:
        check_learn(self.learn, LEARNABLE)
        noise = ClusterGaussian(covariance=self.covariance, min_variance=self.min_variance)
        return Model(Categorical(), Sum(), noise, OneHot(), WeightedMean(), learn=frozenset(self.learn))
