"""Noisy-or causes: hidden binary causes, each of which may set binary features to one.

T. Šingliar and M. Hauskrecht, Noisy-OR Component Analysis and its Application to Link Analysis, JMLR 7 (2006)
2189–2213.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.combinations import Combination, NoisyOr
from multicause.engines import Engine
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import LEARNABLE, product
from multicause.model import Model
from multicause.noises import Noise
from multicause.posteriors import Posterior
from multicause.priors import Prior
from multicause.updates import Update


class NoisyOrCauses(CausalEstimator):
    """Noisy-or component analysis: binary causes of binary data.

    Each active cause h sets feature d to one with probability W_hd, independently of the others::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        w̄_d(s) = 1 − Π_h (1 − W_hd)^{s_h},  0 ≤ W_hd < 1
        p(y_d = 1 | s) = 1 − (1 − ε)(1 − w̄_d(s))

    A feature may also be one without an active cause, with the small probability ε, the leak.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    noise : {"leaky_bernoulli"} or Noise, default="leaky_bernoulli"
        Noise of binary data; ``LeakyBernoulli(leak=0.05)`` is for data in which features are often one without a cause.
    combination : NoisyOr, optional
        Combination of the causes; by default ``NoisyOr()``.
    prior : {"bernoulli"} or Prior, optional
        Prior of the causes; by default ``Bernoulli()``, with one probability per cause.
    posterior : {"exact", "truncated", "preselected", "evolved"} or Posterior, optional
        States considered for a row; by default all if there are at most 10 causes, else ``Preselected(keep=None)``.
    update : {"activation_shares"} or Update, optional
        Update of the components in the M-step; by default exact EM.
    annealing, learn, activity, max_iter, tol, repair, n_init, init, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Probabilities W.
    activity_, lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> from multicause import NoisyOrCauses
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(300, size=3, value=0.9, combination="noisy_or", noise="bernoulli", random_state=0)
    >>> NoisyOrCauses(6, random_state=0).fit(bars.data).components_.shape
    (6, 9)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        noise: str | Noise = "leaky_bernoulli",
        combination: Combination | None = None,
        prior: str | Prior | None = None,
        posterior: str | Posterior | None = None,
        update: str | Update | None = None,
        annealing: str | Annealing | None = "auto",
        learn: tuple[str, ...] = LEARNABLE,
        activity: float | ArrayLike | None = None,
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
        self.max_iter = max_iter
        self.tol = tol
        self.repair = repair
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _parts(self) -> Model:
        return product(self, NoisyOr())
