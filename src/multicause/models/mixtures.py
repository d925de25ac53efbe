"""Mixtures: one cause makes each row.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import kmeans_plusplus
from sklearn.utils._param_validation import Interval, Options

from multicause.combinations import Combination, Sum
from multicause.compatibility import check
from multicause.engines import Data, Engine
from multicause.engines.missing import filled_with_means
from multicause.estimator import LEARNABLE, CausalEstimator
from multicause.learning.annealing import Annealing
from multicause.learning.initialization import Outset, check_values
from multicause.learning.updates.weighted_mean import WeightedMean
from multicause.model import Model, Parameters, interned
from multicause.models.summary import Brief
from multicause.noises import ClusterGaussian, Noise, Poisson
from multicause.noises.clusters import COVARIANCES
from multicause.posteriors import OneHot
from multicause.priors import Categorical


class Mixture(CausalEstimator):
    """What mixtures share: a categorical prior, an exact one-hot posterior, and means as components."""

    _parameter_constraints: dict[str, list[Any]] = {
        name: CausalEstimator._parameter_constraints[name]
        for name in [
            "n_components",
            "annealing",
            "learn",
            "activity",
            "noise_scale",
            "max_iter",
            "tol",
            "n_init",
            "init",
            "random_state",
            "verbose",
            "engine",
        ]
    }
    noise_scale: float | None = None
    repair: bool | None = False

    def __init__(
        self,
        n_components: int = 2,
        *,
        annealing: str | Annealing | None = None,
        learn: tuple[str, ...] = LEARNABLE,
        activity: ArrayLike | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_init: int = 1,
        init: str | ArrayLike = "kmeans++",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.annealing = annealing
        self.learn = learn
        self.activity = activity
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The cause that is most responsible for each row: (n_samples,)."""
        return np.argmax(self.score_single_causes(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """P[v|u], the responsibility of each cause for each row: (n_samples, n_components)."""
        return self.transform(X)

    def fit_predict(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Learn, and say which cause made each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _noise(self) -> Noise:
        raise NotImplementedError

    def _prior(self) -> Categorical:
        return Categorical()

    def _posterior(self) -> OneHot:
        return OneHot()

    def _combination(self, noise: Noise) -> Combination:
        return Sum().within(noise.means)

    def _wire(self, data: Data) -> Model:
        self._check_learn()
        noise = self._noise()
        noise.validate()
        if self.n_components > data.n_rows:
            raise ValueError(
                f"A mixture needs at least one row for each cause: n_components={self.n_components}, but X has "
                f"{data.n_rows} rows. Lower n_components to at most {data.n_rows}."
            )
        parts = (self._prior(), self._combination(noise), noise, self._posterior(), WeightedMean())
        return interned(check(Model(*parts, learn=frozenset(self.learn)), type(self)))

    def _starts(self, outset: Outset) -> Parameters:
        """Starts differ in their means: rows far apart from each other (k-means++), random rows, or the user's."""
        check_values(outset.data)
        if not (isinstance(self.init, str) and self.init == "kmeans++"):
            if isinstance(self.init, str) and self.init not in ("random", "data"):
                raise ValueError(f"Unknown init {self.init!r}. Known: 'kmeans++', 'random', 'data', or an array.")
            kept = "data" if isinstance(self.init, str) else self.init
            return self._starts_from(kept, outset)
        draws = []
        X, weights = outset.data.look()
        X = filled_with_means(X, weights)
        for _ in range(outset.n_starts):
            centres, _ = kmeans_plusplus(X, self.n_components, sample_weight=weights, random_state=outset.random)
            draws.append(self._starts_from(centres, outset._replace(n_starts=1)))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *draws)

    def _accepts_negative(self) -> bool:
        return self._noise().means[0] < 0


class MixtureOfGaussians(Mixture):
    """A mixture of Gaussians: clusters, each with a mean and a covariance of its own.

    TN10 eq. 10.15–10.17::

        P[v] = γ_v
        p[u | v] = N(u; g_v, Σ_v)
        P[v | u] ∝ γ_v N(u; g_v, Σ_v)

    EM alternates responsibilities P[v | u] with means, covariances and proportions weighted by them (eq. 10.3). The
    bound is the log-likelihood and never falls. With one common variance that vanishes, this is K-means
    (:class:`multicause.KMeans`).

    Parameters
    ----------
    n_components : int, default=2
        Number H of clusters.
    covariance : {"spherical", "diagonal", "full"}, default="spherical"
        Σ_v is one variance, as in the chapter, one for each dimension, or any covariance matrix.
    min_variance : float, optional
        Regularisation: the smallest variance in any direction; by default a millionth of the data's variance.
    annealing : "auto", None or Annealing, default=None
        As for :class:`multicause.MaximalCauses`; None is plain EM.
    learn : tuple of str, default=("components", "activity", "noise")
        Which of means, proportions and covariances are learned.
    activity : array-like of shape (n_components,), optional
        Starting (or fixed) proportions; by default equal.
    noise_scale : float, optional
        Starting (or fixed) standard deviation of all clusters; by default the data's.
    max_iter, n_init, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.
    tol : float, default=1e-6
        Learning has converged when the mean log-likelihood per row rises by less per iteration.
    init : {"kmeans++", "random", "data"} or array-like of shape (n_components, n_features), default="kmeans++"
        Starting means: rows that are far from each other, random rows (both other words), or the user's.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Means g.
    activity_ : ndarray of shape (n_components,)
        Proportions γ.
    noise_variance_ : ndarray of shape (n_components, ...)
        Σ of each cluster: a number, (n_features,) or (n_features, n_features), by the form of the covariance.
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

    _parameter_constraints: dict[str, list[Any]] = {
        **Mixture._parameter_constraints,
        "covariance": [Options(str, set(COVARIANCES))],
        "min_variance": [Interval(Real, 0, None, closed="left"), None],
    }
    in_brief = Brief(
        "P[v] = γ_v; p[u|v] = N(u; g_v, Σ_v)",
        "P[v|u] ∝ γ_v N(u; g_v, Σ_v)",
        "γ_v = ⟨P[v|u]⟩; g_v = ⟨P[v|u] u⟩/γ_v; Σ_v = ⟨P[v|u] |u − g_v|²⟩/(D γ_v)",
    )

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
        super().__init__(
            n_components,
            annealing=annealing,
            learn=learn,
            activity=activity,
            max_iter=max_iter,
            tol=tol,
            n_init=n_init,
            init=init,
            random_state=random_state,
            verbose=verbose,
            engine=engine,
        )
        self.covariance = covariance
        self.min_variance = min_variance
        self.noise_scale = noise_scale

    def _noise(self) -> Noise:
        return ClusterGaussian(covariance=self.covariance, min_variance=self.min_variance)


class MixtureOfPoissons(Mixture):
    """A mixture of Poisson distributions: clusters of counts, each with rates of its own.

    As TN10 eq. 10.15 with counts::

        P[v] = γ_v
        P[u | v] = Π_b Poisson(u_b; g_vb)

    Parameters
    ----------
    n_components : int, default=2
        Number H of clusters.
    annealing, learn, activity, max_iter, tol, n_init, init, random_state, verbose, engine
        As for :class:`MixtureOfGaussians`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Rates g.
    activity_ : ndarray of shape (n_components,)
        Proportions γ.
    lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import MixtureOfPoissons
    >>> X = np.random.RandomState(0).poisson([[1, 9]] * 30 + [[8, 2]] * 30)
    >>> np.bincount(MixtureOfPoissons(2, random_state=0).fit_predict(X)).tolist()
    [30, 30]
    """

    in_brief = Brief(
        "P[v] = γ_v; P[u|v] = Π_b Poisson(u_b; g_vb)",
        "P[v|u] ∝ γ_v P[u|v]",
        "γ_v = ⟨P[v|u]⟩; g_v = ⟨P[v|u] u⟩/γ_v",
    )

    def _noise(self) -> Noise:
        return Poisson()
