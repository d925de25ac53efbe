"""Maximal causes: hidden causes of which, in each dimension, the strongest alone is seen.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
ET10: J. Lücke and J. Eggert, Expectation Truncation and the Benefits of Preselection in Training Generative Models,
JMLR 11 (2010) 2855–2900.
"""

from multicause.combinations import Combination, Maximum
from multicause.estimators.causal import CausalEstimator
from multicause.noises import Noise
from multicause.parts import resolve


class MaximalCauses(CausalEstimator):
    """Maximal Causes Analysis (MCA): parts that occlude or mask each other.

    Binary causes s are drawn independently, and the largest weight among the active ones is the mean of an
    observation (MCA08 eq. 1–3)::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        w̄_d(s) = max_h s_h W_hd,  W_hd ≥ 0
        p(y | s) = Π_d Poisson(y_d; w̄_d(s))  or  Π_d N(y_d; w̄_d(s), σ²)

    With ``posterior="exact"`` this is MCA_ex of MCA08, equations 8–12, with ``Truncated(3)`` its MCA₃, and with
    ``Preselected(...)`` MCA_ET of ET10.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    noise : {"gaussian", "diagonal_gaussian", "poisson", "bernoulli"} or Noise, default="gaussian"
        How a mean becomes an observation; "poisson" is for counts and other non-negative intensities, "bernoulli" for
        binary data, "diagonal_gaussian" for dimensions with a noise of their own.
    combination : Maximum, optional
        How credit is shared while learning: ``Maximum(credit="sigmoid")`` is MCA08's smoothed Heaviside function.
    prior : {"bernoulli"} or Prior, optional
        How causes are drawn; by default ``Bernoulli()``, with one probability per cause.
    posterior : {"exact", "truncated", "preselected"} or Posterior, optional
        Which states are considered for a row; by default all of up to 10 causes, else ``Preselected(keep=None)``.
    update : {"credit", "gradient"} or Update, optional
        How components move in an M-step; by default the mean by credit (MCA08 eq. 9).
    annealing : "auto", None or Annealing, default="auto"
        Schedule of the temperature: ``ConditionalCooling`` is MCA08's, ``LinearCooling`` ET10's; None is plain EM. Its
        start must be below the temperature at which all components become equal, which depends on the data.
        "auto" finds it from the data, anneals, and repairs what is left of local optima (see
        :mod:`multicause.search.automatic`); components given as ``init`` are not annealed.
    learn : tuple of str, default=("components", "activity", "noise")
        Which parameters are learned; the others keep their starting values.
    activity : float or array-like of shape (n_components,), optional
        Starting (or fixed) probability of each cause; by default two active causes per row.
    noise_scale : float, optional
        Starting (or fixed) standard deviation of Gaussian noise; by default half the data's.
    max_iter : int, default=500
        Most iterations of EM, those of repair included.
    tol : float, default=1e-5
        Learning has converged when the mean bound per row rises by less per iteration, over some iterations. With 0 it
        ends by the schedule, by ``max_iter``, or where no step raises the bound any more.
    repair : bool, optional
        Whether local optima are repaired after convergence (see :mod:`multicause.search.repair`); by default only
        with ``annealing="auto"``.
    n_init : int, default=1
        Number of random starts, learned side by side; the one with the highest bound is kept.
    init : {"random", "mean", "data"}, array-like of shape (n_components, n_features) or estimator, default="random"
        Starting components: positive numbers around the data's mean, or half way between that and its mean row, rows
        of the data, the user's, or those that another model finds in the data, such as
        ``SoftmaxNetwork(n_components)`` (the hybrid of MCA08 §7.4).
    random_state : int, RandomState or None
        Seed of starts and repair.
    verbose : int, default=0
        1 writes a line per iteration: its number, temperature and bound.
    engine : Engine, optional
        Where data lies and how much memory its blocks may take; by default ``Local()``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The causes' weights W.
    activity_ : ndarray of shape (n_components,)
        How often each cause is active, π.
    noise_variance_ : float or None
        σ² of Gaussian noise; None for noise without a scale.
    lower_bound_ : float
        Mean log evidence per row (its lower bound, if the posterior is not exact) at the end.
    lower_bounds_ : ndarray of shape (n_kept + 1,)
        The same before each of the ``n_kept`` iterations that led to the result, at that iteration's temperature, and
        at the end. ``partial_fit`` appends the bound of each batch before its step.
    temperatures_ : ndarray of the same shape
        Temperature of each of these.
    rows_kept_ : ndarray of the same shape or None
        Share of all rows, by weight, that were learned from: one, unless ``Preselected(keep=...)`` leaves some out.
        None where learning has no such record.
    phases_ : tuple of (int, str)
        Index in ``lower_bounds_`` from which on bounds are not comparable with those before, and why, for each such
        place. With ``annealing="auto"``, causes of many rows are found on some of them, and often with fewer states.
    n_iter_ : int
        Number of iterations that were run, at most ``max_iter``; callbacks are told of all of them. Those of repair
        that found nothing better, and of other starts that learned on after the best one had converged, are among them,
        so that ``n_kept`` may be smaller.
    converged_ : bool
        Whether learning came to rest.
    outcome_ : str
        How it ended: "converged", "max_iter", "bound_fell", "cause_died", "non_finite" or "stopped" (by a callback or
        Ctrl-C). After ``partial_fit`` it is "max_iter": the steps that one batch asks for are done.
    posterior_, update_, annealing_ : Part
        The parts that were used.
    evidence_threshold_ : float
        Log evidence above which :meth:`is_explained` takes a row to be explained.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from multicause import MaximalCauses
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, noise="poisson", random_state=0)
    >>> model = MaximalCauses(10, noise="poisson", random_state=0).fit(bars.data)
    >>> model.outcome_
    'converged'
    """

    def _combination(self, noise: Noise) -> Combination:
        return resolve(self.combination or Maximum().within(noise.means), {}, "combination", Maximum)
