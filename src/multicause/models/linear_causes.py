"""Linear causes: hidden binary causes whose components add up.

ET10: J. Lücke and J. Eggert, Expectation Truncation and the Benefits of Preselection in Training Generative Models,
JMLR 11 (2010) 2855–2900.
"""

from multicause.combinations import Sum
from multicause.estimators.binary_causes import BinaryCauses
from multicause.estimators.settings import product
from multicause.model import Model


class LinearCauses(BinaryCauses):
    """Linear Components Analysis (LinCA): binary causes whose components, of any sign, add up.

    As ET10 eq. 22, 24 and 25 without the restriction to non-negative weights::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        w̄_d(s) = Σ_h s_h W_hd
        p(y | s) = Π_d N(y_d; w̄_d(s), σ²)

    With the exact posterior, the bound is the log-likelihood and EM never lowers it: the M-step first computes σ from
    the residuals of the old components, then the components by least squares (ET10 eq. 26).

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    noise : {"gaussian", "diagonal_gaussian", "poisson", "bernoulli"} or Noise, default="gaussian"
        Distribution of an observation given its mean. With "poisson", data and components are non-negative; with
        "bernoulli", data are zeros and ones, and sums are clipped at one; "diagonal_gaussian" gives each dimension its
        own variance.
    combination : Sum, optional
        ``Sum(nonnegative=True)`` constrains components to be non-negative.
    prior : {"bernoulli", "ternary", "graded"} or Prior, optional
        Prior of the causes; by default ``Bernoulli()``, with one probability per cause. ``Ternary()`` has causes with
        the values −1, 0 and 1, and ``Graded(levels)`` causes with other levels; the probability of each level of each
        cause is then learned as ``level_probabilities_``.
    posterior : {"exact", "preselected", "beam", "evolved"} or Posterior, optional
        States considered for a row; by default all if there are at most 10 causes, else ``Preselected(keep=None)``.
    update : {"least_squares", "coordinates", "multiplicative", "multiplicative_counts", "gradient"} or Update, optional
        Update of the components in the M-step; by default least squares, under W ≥ 0 cause by cause.
    annealing, learn, activity, noise_scale, max_iter, tol, repair, n_init, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.
    init : {"random", "data"} or array-like of shape (n_components, n_features), default="random"
        Initial components: Gaussian numbers with a third of the data's standard deviation around half its mean (for
        counts, positive numbers around the data's mean), rows of the data, or a given array. "mean", as in
        :class:`multicause.MaximalCauses`, is for non-negative components.

    Attributes
    ----------
    components_, activity_, noise_variance_, lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> from multicause import LinearCauses
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, kind="signed", noise="gaussian", random_state=0)
    >>> LinearCauses(10, random_state=0).fit(bars.data).components_.shape
    (10, 25)
    """

    def _parts(self) -> Model:
        return product(self, Sum())
