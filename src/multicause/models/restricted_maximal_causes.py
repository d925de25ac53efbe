"""Maximal causes restricted to equal strength and frequency.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
GSN07: J. Lücke and M. Sahani, Generalized Softmax Networks for Non-linear Component Extraction, ICANN 2007.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from multicause.annealing import Annealing
from multicause.combinations import Combination, Maximum
from multicause.em.e_step import expect
from multicause.em.initialization import InitialConditions, choose_annealing
from multicause.em.results import FitResult, per_row
from multicause.engines import Data, Engine, Local
from multicause.estimators.causal import CausalEstimator, FitProblem
from multicause.model import Model, Parameters, interned
from multicause.noises import Noise
from multicause.posteriors import Truncated, choose_posterior
from multicause.search.restarts import learn_restarts
from multicause.updates import NormalizedMean


class RestrictedCauses(CausalEstimator):
    """Base class of the restricted model: Poisson noise, one fixed π, and components of equal sum C."""

    _parameter_constraints: dict[str, list[Any]] = {
        **CausalEstimator._parameter_constraints,
        "total": [Interval(Real, 0, None, closed="neither"), None],
        "activity": [Interval(Real, 0, 1, closed="neither"), None],
    }
    noise = "poisson"
    combination = None
    prior = None
    posterior = Truncated(2, empty_state=False, compensate=False)
    update = NormalizedMean()
    learn: tuple[str, ...] = ("components",)
    noise_scale = None
    repair = False

    # Constructor parameters that only the restricted model has.
    total: float | None

    def _combination(self, noise: Noise) -> Combination:
        return Maximum()

    def _wire(self, data: Data) -> Model:
        n_states, most = self.posterior.n_states(self.n_components), self.posterior.max_states
        if n_states > most:
            raise ValueError(
                f"{type(self).__name__} compares all pairs of causes: {n_states:,} states for n_components="
                f"{self.n_components}, more than {most:,}. Use fewer, or MaximalCauses, which selects candidates."
            )
        return super()._wire(data)

    @property
    def _recognizer(self) -> Model:
        return with_more_states(self._model, *self.components_.shape)

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return the default starts, scaled to the sum C. Rows of zeros cannot be scaled, so they are no starts."""
        X, weights = initial.data.look()
        starts = super()._starts(initial._replace(data=Local().load(X, weights * X.any(axis=1))))
        sums = starts.components.sum(axis=-1, keepdims=True)
        if not (np.asarray(sums) > 0).all():
            raise ValueError(
                "Every component in init needs a positive sum, because components are scaled to one sum; "
                f"component {int(np.argmin(np.asarray(sums)[0]))} is zero. Remove it, or use init='random'."
            )
        total = self._total(initial, starts)
        return starts._replace(components=starts.components * (total / sums).astype(starts.components.dtype))

    def _total(self, initial: InitialConditions, starts: Parameters) -> float:
        """Return C: the user's value, or the mean sum of a row divided by the expected number π·H of active causes.

        Causes occlude each other, so this is slightly less than the sum of a single cause; its scale does not affect
        which causes are found (MCA08 appendix E.1).
        """
        if self.total is not None:
            return float(self.total)
        expected = float(np.asarray(initial.model.prior.activity(starts.prior))[0].sum())
        return float(np.sum(initial.moments.mean)) / expected

    @staticmethod
    def _learned(model: Model, parameters: Parameters) -> dict[str, Any]:
        return {**CausalEstimator._learned(model, parameters), "total_": float(np.sum(parameters.components[0]))}


def with_more_states(model: Model, n_components: int, n_features: int) -> Model:
    """Return the model with a posterior of more states, for recognition.

    Pairs are enough for learning, but rows may have more than two causes.
    """
    posterior = choose_posterior(n_components)
    richer = replace(model, posterior=posterior)
    return interned(replace(richer, posterior=posterior.bind(richer, n_components, n_features, 1)))


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

    _parameter_constraints: dict[str, list[Any]] = {
        **RestrictedCauses._parameter_constraints,
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
    }
    n_init: int | None  # type: ignore[assignment]

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

    @property
    def _n_starts(self) -> int:
        if self.n_init is not None:
            return self.n_init
        return STARTS if self.annealing == "auto" and isinstance(self.init, str) else 1

    def _learn(self, problem: FitProblem) -> tuple[FitResult, Annealing]:
        """Anneal all starts, and return the one with the highest likelihood under the posterior with more states."""
        model, data, search_data, starts = problem.model, problem.data, problem.search_data, problem.starts
        n_starts, n_components, n_features = starts.components.shape
        judge = with_more_states(model, n_components, n_features)

        def likelihood(starts: Parameters) -> np.ndarray:
            own = self._arranged(search_data, judge, n_components, n_starts)
            return per_row(own.sum(partial(expect, judge), starts, jnp.ones(n_starts)), "bound")[0]

        return learn_restarts(
            model,
            likelihood,
            data,
            search_data,
            starts,
            annealing=None if self.annealing == "auto" else choose_annealing(self.annealing),
            annealed=isinstance(self.init, str),
            **problem.settings,
        )
