"""Maximal causes: hidden causes of which, in each dimension, only the strongest active one is visible.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
ET10: J. Lücke and J. Eggert, Expectation Truncation and the Benefits of Preselection in Training Generative Models,
JMLR 11 (2010) 2855–2900.
"""

from multicause.combinations import Maximum
from multicause.estimators.binary_causes import BinaryCauses
from multicause.estimators.settings import product
from multicause.model import Model


class MaximalCauses(BinaryCauses):
    """Maximal Causes Analysis (MCA): parts that occlude or mask each other.

    Binary causes s are drawn independently, and the mean of an observation in each dimension is the largest weight
    among the active causes (MCA08 eq. 1–3)::

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
        Distribution of an observation given its mean; "poisson" is for counts and other non-negative intensities,
        "bernoulli" for binary data, "diagonal_gaussian" for dimensions with different noise variances.
    combination : Maximum or MaximumMagnitude, optional
        How credit is shared in learning: ``Maximum(credit="sigmoid")`` is MCA08's smoothed Heaviside function. With
        ``MaximumMagnitude()``, components have both signs, and the one farthest from zero is visible (MMCA).
    prior : {"bernoulli"} or Prior, optional
        Prior of the causes; by default ``Bernoulli()``, with one probability per cause.
    posterior : {"exact", "truncated", "preselected", "evolved"} or Posterior, optional
        States considered for a row; by default all if there are at most 10 causes, else ``Preselected(keep=None)``.
    update : {"credit", "gradient"} or Update, optional
        Update of the components in the M-step; by default the mean of the data weighted by credit (MCA08 eq. 9).
    annealing : "auto", None or Annealing, default="auto"
        Temperature schedule: ``ConditionalCooling`` is MCA08's, ``LinearCooling`` ET10's; None is plain EM. A schedule
        must start below the temperature at which all components become equal, which depends on the data.
        "auto" estimates it from the data, anneals, and repairs the remaining local optima (see
        :mod:`multicause.search.automatic`); components given as ``init`` are not annealed.
    learn : tuple of str, default=("components", "activity", "noise")
        Which parameters are learned; the others keep their initial values.
    activity : float or array-like of shape (n_components,), optional
        Initial (or fixed) probability of each cause; by default two active causes per row.
    noise_scale : float, optional
        Initial (or fixed) standard deviation of Gaussian noise; by default half that of the data.
    max_iter : int, default=500
        Maximum number of EM iterations, including those of repair.
    tol : float, default=1e-5
        Learning has converged when the mean bound per row rises by less than this per iteration, averaged over several
        iterations. With 0 it ends with the schedule, at ``max_iter``, or when no step raises the bound any more.
    repair : bool, optional
        Whether local optima are repaired after convergence (see :mod:`multicause.search.repair`); by default only
        with ``annealing="auto"``.
    n_init : int, default=1
        Number of random starts, learned in parallel; the one with the highest bound is kept.
    init : {"random", "mean", "data"}, array-like of shape (n_components, n_features) or estimator, default="random"
        Initial components: positive random numbers around the overall mean of the data ("random") or half way between
        that and its mean row ("mean"), rows of the data, a given array, or the components that another estimator
        finds, such as ``SoftmaxNetwork(n_components)`` (the hybrid of MCA08 §7.4).
    random_state : int, RandomState or None
        Random seed of starts and repair.
    verbose : int, default=0
        With 1, print a line per iteration: its number, temperature and bound.
    engine : Engine, optional
        Where the data are stored and how much memory their blocks may take; by default ``Local()``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The causes' weights W.
    activity_ : ndarray of shape (n_components,)
        Probability π that each cause is active.
    noise_variance_ : float or None
        σ² of Gaussian noise; None for noise without a scale.
    lower_bound_ : float
        Mean log evidence per row (its lower bound, if the posterior is not exact) at the end.
    lower_bounds_ : ndarray of shape (n_kept + 1,)
        ``lower_bound_`` before each of the ``n_kept`` iterations that led to the result, at that iteration's
        temperature, and at the end. ``partial_fit`` appends the bound of each batch before its step.
    temperatures_ : ndarray of the same shape
        Temperature of each entry of ``lower_bounds_``.
    rows_kept_ : ndarray of the same shape or None
        Share of all rows, by weight, that were used for learning: one, unless ``Preselected(keep=...)`` leaves some
        out. None if the learning algorithm does not record it.
    bound_changes_ : tuple of (int, str)
        Each index in ``lower_bounds_`` from which on bounds are not comparable with earlier ones, and the reason. With
        ``annealing="auto"``, large data are first learned on a sample of the rows, and often with fewer states.
    n_iter_ : int
        Number of iterations that were run, at most ``max_iter``; callbacks are called for all of them. They include
        those of repair that found nothing better, and of other starts that continued after the best one had converged,
        so that ``n_kept`` may be smaller.
    converged_ : bool
        Whether learning converged.
    outcome_ : str
        How learning ended: "converged", "max_iter", "bound_fell", "cause_died", "non_finite" or "stopped" (by a
        callback or Ctrl-C). After ``partial_fit`` it is "max_iter", because all steps of the batch were done.
    posterior_, update_, annealing_ : Part
        The parts that were used.
    evidence_threshold_ : float
        Log evidence above which :meth:`is_explained` considers a row explained.
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

    def _parts(self) -> Model:
        return product(self, Maximum())
