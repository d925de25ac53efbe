"""Non-negative causes: hidden binary causes with non-negative components that add up.

ET10: J. Lücke and J. Eggert, Expectation Truncation and the Benefits of Preselection in Training Generative Models,
JMLR 11 (2010) 2855–2900.
"""

from multicause.combinations import Sum
from multicause.estimators.binary_causes import BinaryCauses
from multicause.estimators.settings import product
from multicause.model import Model


class NonnegativeCauses(BinaryCauses):
    """Probabilistic non-negative matrix factorization with binary causes (ET-NMF).

    As ET10 eq. 22, 24 and 25, with W ≥ 0::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        w̄_d(s) = Σ_h s_h W_hd,  W_hd ≥ 0
        p(y | s) = Π_d N(y_d; w̄_d(s), σ²)  or  Π_d Poisson(y_d; w̄_d(s))

    Components are non-negative; data may be negative, because Gaussian noise produces negative values.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    noise : {"gaussian", "diagonal_gaussian", "poisson", "bernoulli"} or Noise, default="gaussian"
        Distribution of an observation given its mean; "bernoulli" is for binary data, with sums clipped at one.
    combination : Sum, optional
        Combination of the causes; by default ``Sum(nonnegative=True)``, with an upper bound if the noise needs one.
    prior : {"bernoulli"} or Prior, optional
        Prior of the causes; by default ``Bernoulli()``, with one probability per cause.
    posterior : {"exact", "preselected", "beam", "evolved"} or Posterior, optional
        States considered for a row; by default all if there are at most 10 causes, else ``Preselected(keep=None)``.
    update : {"coordinates", "multiplicative", "least_squares", "multiplicative_counts", "gradient"} or Update, optional
        Update of the components in the M-step; by default least squares under W ≥ 0, cause by cause. "multiplicative"
        is ET10 eq. 27 with 20 partial steps, "least_squares" eq. 26 with weights clamped at zero. Counts have their own
        update, "multiplicative_counts".
    annealing, learn, activity, noise_scale, max_iter, tol, repair, n_init, init, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_, activity_, noise_variance_, lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> from multicause import NonnegativeCauses
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, combination="sum", noise="gaussian", random_state=0)
    >>> NonnegativeCauses(10, random_state=0).fit(bars.data).components_.min() >= 0
    np.True_
    """

    def _parts(self) -> Model:
        model = product(self, Sum(nonnegative=True))
        if model.combination.bounds[0] < 0:
            raise ValueError(
                "NonnegativeCauses needs combination=Sum(nonnegative=True); got Sum(nonnegative=False). Use "
                "LinearCauses for components of any sign."
            )
        return model
