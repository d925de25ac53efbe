"""Factor analysis: Gaussian causes that add up, under noise that differs between dimensions.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.combinations import Sum
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.gaussian_factors import GaussianFactors
from multicause.estimators.settings import LEARNABLE, check_learn
from multicause.model import Model
from multicause.noises import DiagonalGaussian
from multicause.posteriors import LinearGaussian
from multicause.priors import Gaussian
from multicause.search.em import EM
from multicause.updates import LeastSquares


class FactorAnalysis(GaussianFactors):
    """Factor analysis: a few independent causes that explain how dimensions vary together.

    TN10 eq. 10.18–10.21 and its appendix, with the data's mean subtracted::

        p[v] = N(v; 0, 1)
        p[u | v] = N(u; G·v, Σ),  Σ = diag(Σ_1 … Σ_D)
        p[v | u] = N(v; W·u, Ψ),  Ψ = (1 + Gᵀ Σ⁻¹ G)⁻¹,  W = Ψ Gᵀ Σ⁻¹

    Each dimension has its own noise variance, so that a noisy sensor does not count as structure (figure 10.3). EM
    never lowers the log-likelihood. It only needs the covariance of the data, which is computed once. Components are
    determined up to a rotation among causes.

    Parameters
    ----------
    n_components : int, default=2
        Number H of causes, at most the number of features.
    learn : tuple of str, default=("components", "noise")
        Which of the two are learned; the other keeps its initial value.
    noise_scale : float, optional
        Initial (or fixed) standard deviation of the noise; by default half that of the data.
    max_iter : int, default=2000
        Maximum number of EM iterations.
    tol : float, default=1e-7
        Learning has converged when the mean log-likelihood per row rises by less per iteration.
    n_init, init, random_state, verbose, engine
        As for :class:`multicause.LinearCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        G, transposed: the effect of each cause on the data (its projective field).
    receptive_fields_ : ndarray of shape (n_components, n_features)
        Recognition weights W.
    noise_variance_ : ndarray of shape (n_features,)
        Noise variances, the diagonal of Σ.
    mean_ : ndarray of shape (n_features,)
        Mean of the data; if values are missing, its maximum-likelihood estimate, learned with the other parameters.
    activity_ : ndarray of shape (n_components,)
        Standard deviation of each cause under the prior, one.
    lower_bound_, lower_bounds_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; the bound is the log-likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import FactorAnalysis
    >>> random = np.random.RandomState(0)
    >>> cause = random.normal(size=500)
    >>> X = cause[:, None] + random.normal(size=(500, 3)) * [0.5, 0.5, 3]
    >>> found = FactorAnalysis(1, random_state=0).fit_transform(X)[:, 0]
    >>> bool(abs(np.corrcoef(found, cause)[0, 1]) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        learn: tuple[str, ...] = ("components", "noise"),
        noise_scale: float | None = None,
        max_iter: int = 2000,
        tol: float = 1e-7,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.learn = learn
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
        parts = (Gaussian(), Sum(), DiagonalGaussian(), LinearGaussian(), LeastSquares())
        return Model(*parts, learn=frozenset(self.learn))

    def _solver(self) -> Solver:
        # The prepared rows have the moments of all data; those of a batch have the moments of all batches so far.
        return EM(max_iter=self.max_iter, tol=self.tol, n_starts=self.n_init, averages_batches=False)
