"""A neural network that learns maximal causes online, one observation at a time.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
GSN07: J. Lücke and M. Sahani, Generalized Softmax Networks for Non-linear Component Extraction, ICANN 2007.
"""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from multicause.annealing import LinearCooling
from multicause.engines import Engine
from multicause.estimators.hebbian import HebbianEstimator
from multicause.estimators.settings import COUNT, NOT_NEGATIVE, POSITIVE
from multicause.runtime.scikit_learn import Interval, Options
from multicause.solvers.hebbian_epochs import HebbianEpochs


class SoftmaxNetwork(HebbianEstimator):
    """R-MCA_NN: Hebbian learning with a generalized softmax and divisive normalization (MCA08 §5, GSN07).

    H units compete for each row y; the response of unit h is the posterior probability that cause h alone generated y,
    among single causes and pairs (MCA08 eq. 25), and every unit learns in proportion to its response::

        g_h = exp(I_h/T) / (Σ_h' exp(I_h'/T) + π/(1 − π) Σ_{a<b} exp(I_ab/T))
        W_h ← C (W_h + ε g_h y + σ η) / Σ_d (…)

    This is the online version of :class:`RestrictedMaximalCauses` with the same generative model: ``transform``,
    ``sample``, ``score_samples`` and other methods are the same. Noise from single rows and on the weights lets it
    escape local optima, so it finds causes more reliably than any batch algorithm, but estimates them less exactly: use
    it as ``init`` of :class:`MaximalCauses` (MCA08 §7.4).

    ``partial_fit`` shows each row of a batch once, in the order given, or as often as its weight says. The first batch
    determines the initial weights, and C and the temperature if they are not given, so it should be typical.

    The defaults are the network that MCA08 calls R-MCA_NN and GSN07 NN_fast, with temperature, noise and initial
    weights estimated from the data. NN_slow is ``annealing=LinearCooling(18, n_iter=150, hold=1/3, settle=0),
    max_iter=200, learning_rate=0.1, component_noise=0, init="random"``.

    Parameters
    ----------
    n_components, total, activity : int, default=10; float, optional; float, optional
        Number H of units; C, the sum of the weights of each, by default from the data's mean; probability π of each
        cause, by default two active causes per row.
    temperature : "auto" or float, default="auto"
        Fixed temperature T. The papers use 16 for bars of value 10 on 5×5 pixels and more, and 3 for short bars on 3×3.
        "auto" uses a fraction of the temperature above which all units stay equal, estimated from the data.
    learning_rate, component_noise : float, default=1.0; float, optional
        Learning rate ε in (0, 1]; lower rates average over more rows. Standard deviation σ of noise on the weights at
        each presentation, in units of the data; by default a hundredth of the mean weight.
    annealing : LinearCooling or None, default=None
        Schedule in epochs, instead of a fixed temperature; the temperature also applies to π (GSN07 eq. 20). Each batch
        of ``partial_fit`` is an epoch. ``max_iter`` must be long enough for the whole schedule.
    hold : int, optional
        Learning ends when all causes have kept their units for this many presentations. If the causes are not given to
        ``fit``, the mean weights of all units that respond often are used in their place. By default 4000, as in MCA08,
        or twelve epochs if those are more and the causes are not given.
    max_iter : int, default=100
        Maximum number of epochs; in an epoch as many rows are shown as X has, drawn at random. Rows with weights are
        drawn in proportion to them, as many as the weights add up to, within 1 to 16 times the rows of positive weight.
    n_init : int, default=3
        Number of networks, each with its own random start; the one with the highest likelihood is kept. If the causes
        are given to ``fit`` there is only one, which learns until it has found them.
    init : {"mean", "random", "data"} or array-like of shape (n_components, n_features), default="mean"
        Initial weights, scaled to the sum C: random around a flat row ("random", as in the papers), around the average
        of a flat row and the mean row ("mean"), rows, or a given array. If some features are much stronger than others,
        the first unit that learns after a flat start responds most to all rows.
    random_state, verbose, engine
        As in :class:`MaximalCauses`; the seed is also that of the order of rows and of the noise.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights: after ``fit`` their mean over the epochs in which no unit changed its cause, or over the last one if
        there is a schedule; the present ones after ``partial_fit``. If neither causes nor a schedule are given, units
        that represent two causes are split at the end, as a cause that never occurs alone cannot be learned otherwise.
    temperature_, n_presentations_, n_learned_ : float, int, int
        Temperature T (the first one of a schedule), number of rows shown, and number of them after which no cause
        changed its unit.
    total_, activity_, lower_bound_, lower_bounds_, n_iter_, converged_, outcome_, n_features_in_
        As in :class:`RestrictedMaximalCauses`; an iteration is an epoch or a batch. ``n_iter_`` counts epochs of the
        network that is kept; callbacks are called for those of all networks, one network after the other.

    Examples
    --------
    >>> from multicause import SoftmaxNetwork, datasets
    >>> SoftmaxNetwork(10, random_state=0).fit(datasets.make_bars(500, random_state=0).data).components_.shape
    (10, 25)
    """

    _constraints = {
        "temperature": [Options(str, {"auto"}), POSITIVE],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "component_noise": [NOT_NEGATIVE],
        "annealing": [LinearCooling],
        "hold": [COUNT],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        total: float | None = None,
        activity: float | None = None,
        temperature: str | float = "auto",
        learning_rate: float = 1.0,
        component_noise: float | None = None,
        annealing: LinearCooling | None = None,
        hold: int | None = None,
        max_iter: int = 100,
        n_init: int = 3,
        init: str | ArrayLike = "mean",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.total = total
        self.activity = activity
        self.temperature = temperature
        self.learning_rate = learning_rate
        self.component_noise = component_noise
        self.annealing = annealing
        self.hold = hold
        self.max_iter = max_iter
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _solver(self) -> HebbianEpochs:
        names = ("total", "temperature", "learning_rate", "component_noise", "annealing", "hold", "max_iter")
        rule = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return HebbianEpochs(**rule, n_starts=self.n_init, n_units=self.n_components)
