"""Maximal causes restricted to equal strength and frequency.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
GSN07: J. Lücke and M. Sahani, Generalized Softmax Networks for Non-linear Component Extraction, ICANN 2007.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import Annealing
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.restricted_causes import RestrictedCauses
from multicause.search.restarts import Restarts

# Default number of starts. A single one from the critical temperature finds all standard bars in 97 % of the trials.
STARTS = 4


class RestrictedMaximalCauses(RestrictedCauses):
    """R-MCA₂: maximal causes that all have the same probability π and the same sum of weights C (MCA08 §4.2).

    The model is that of :class:`MaximalCauses` with Poisson noise. Its restrictions allow the strongest truncation that
    still finds causes: only states of single causes contribute to the M-step, and pairs only compete with them in the
    E-step (MCA08 eq. 21 and 22)::

        g_h = exp(I_h) / (Σ_h' exp(I_h') + π/(1 − π) Σ_{a<b} exp(I_ab)),   I = Σ_d (y_d log w̄_d − w̄_d)
        W_hd = C Σ_n g_h y_d / Σ_d' Σ_n g_h y_d'

    The cost per row is D·H²/2. There are fewer local optima than with free parameters, even if the restrictions do not
    hold. GSN07 calls the same algorithm approximate EM; its online version is :class:`SoftmaxNetwork`. After learning,
    causes are inferred with the posterior that :class:`MaximalCauses` would choose, which includes states with more
    than two causes; ``lower_bound_`` is that of learning.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    total : float, optional
        C, the sum of the weights of each component; by default from the data's mean.
    activity : float, optional
        π, which is not learned; by default two active causes per row. Its exact value matters little.
    annealing : "auto", None or Annealing, default="auto"
        ``ConditionalCooling(0.7 * D + 1, final=1.5)`` is MCA08's schedule for bars of value 10, and
        ``LinearCooling(18, n_iter=150, hold=1/3, settle=0)`` GSN07's. "auto" estimates the initial temperature from the
        data and cools as MCA08 does; components given as ``init`` are not annealed.
    n_init : int, optional
        Number of random starts, learned in parallel; the one with the highest likelihood is kept, computed with states
        of more than two causes. By default four with ``annealing="auto"``, else one.
    max_iter, tol, init, random_state, verbose, engine
        As in :class:`MaximalCauses`; components given as ``init`` are scaled to the sum C.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The causes' weights W.
    total_ : float
        Sum C of the weights of each component.
    activity_ : ndarray of shape (n_components,)
        π of each cause.
    lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_, n_features_in_
        As in :class:`MaximalCauses`.

    Examples
    --------
    >>> from multicause import RestrictedMaximalCauses
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, random_state=0)
    >>> model = RestrictedMaximalCauses(10, random_state=0).fit(bars.data)
    >>> model.components_.shape
    (10, 25)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        total: float | None = None,
        activity: float | None = None,
        annealing: str | Annealing | None = "auto",
        max_iter: int = 500,
        tol: float = 1e-5,
        n_init: int | None = None,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.total = total
        self.activity = activity
        self.annealing = annealing
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _solver(self) -> Solver:
        annealed = isinstance(self.init, str)
        n_starts = STARTS if self.annealing == "auto" and annealed else 1
        return Restarts(
            max_iter=self.max_iter,
            tol=self.tol,
            n_starts=n_starts if self.n_init is None else self.n_init,
            annealing=self.annealing,
            annealed=annealed,
        )
