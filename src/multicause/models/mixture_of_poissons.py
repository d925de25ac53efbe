"""Mixture of Poisson distributions: each row of counts belongs to one of several clusters.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.combinations import Sum
from multicause.engines import Engine
from multicause.estimators.mixture import Mixture
from multicause.estimators.settings import LEARNABLE, check_learn
from multicause.model import Model
from multicause.noises import Poisson
from multicause.posteriors import OneHot
from multicause.priors import Categorical
from multicause.updates.weighted_mean import WeightedMean


class MixtureOfPoissons(Mixture):
    """A mixture of Poisson distributions: clusters of counts, each with its own rates.

    As TN10 eq. 10.15 with counts::

        P[v] = γ_v
        P[u | v] = Π_b Poisson(u_b; g_vb)

    Parameters
    ----------
    n_components : int, default=2
        Number H of clusters.
    annealing, learn, activity, max_iter, tol, n_init, init, random_state, verbose, engine
        As for :class:`multicause.MixtureOfGaussians`.

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

    def _parts(self) -> Model:
        check_learn(self.learn, LEARNABLE)
        combination = Sum(nonnegative=True)
        return Model(Categorical(), combination, Poisson(), OneHot(), WeightedMean(), learn=frozenset(self.learn))
