"""A neural network that learns maximal causes online, one observation at a time.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
GSN07: J. Lücke and M. Sahani, Generalized Softmax Networks for Non-linear Component Extraction, ICANN 2007.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, Options

from multicause.annealing import LinearCooling
from multicause.engines import Engine
from multicause.estimators.restricted_causes import RestrictedCauses
from multicause.estimators.settings import COUNT, NOT_NEGATIVE, POSITIVE
from multicause.solvers.hebbian_epochs import HebbianEpochs


class SoftmaxNetwork(RestrictedCauses):
    """R-MCA_NN: Hebbian learning with a generalized softmax and divisive normalisation (MCA08 §5, GSN07).

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
    n_components : int, default=10
        Number H of units.
    total : float, optional
        C, the sum of the weights of each unit; by default from the data's mean.
    activity : float, optional
        Probability π of each cause; by default two active causes per row.
    temperature : "auto" or float, default="auto"
        Fixed temperature T. The papers use 16 for bars of value 10 on 5×5 pixels and more, and 3 for short bars on 3×3.
        "auto" uses a fraction of the temperature above which all units stay equal, estimated from the data.
    learning_rate : float, default=1.0
        Learning rate ε in (0, 1]; lower rates average over more rows.
    component_noise : float, optional
        σ, standard deviation of noise on the weights at each presentation, in units of the data; by default a hundredth
        of the mean weight.
    annealing : LinearCooling or None, default=None
        Schedule in epochs, instead of a fixed temperature; the temperature also applies to π (GSN07 eq. 20). Each batch
        of ``partial_fit`` is an epoch. ``max_iter`` must be long enough for the whole schedule.
    hold : int, default=4000
        Learning ends when all causes have kept their units for this many presentations. If the causes are not given to
        ``fit``, the mean weights of all units that respond often are used in their place: each must stay represented by
        the unit that learned it.
    max_iter : int, default=100
        Maximum number of epochs; in an epoch as many rows are shown as X has, drawn at random. Rows with weights are
        drawn in proportion to them, as many as the weights add up to, but at least as many as have a positive weight,
        and at most 16 times as many.
    n_init : int, default=3
        Number of networks, each with its own random start; the one with the highest likelihood is kept. If the causes
        are given to ``fit`` there is only one, which learns until it has found them.
    init : {"mean", "random", "data"} or array-like of shape (n_components, n_features), default="mean"
        Initial weights, which are scaled to the sum C: random around a flat row ("random", as in the papers), random
        around the average of a flat row and the mean row ("mean"), rows of the data, or a given array. If some features
        are much stronger than others, the first unit that learns after a flat start responds most to all rows.
    random_state : int, RandomState or None
        Random seed of the initial weights, the order of rows and the noise.
    verbose : int, default=0
        With 1, print a line per epoch.
    engine : Engine, optional
        Where the data are stored for recognition and bounds.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights: their mean over the last epoch after ``fit``, the present ones after ``partial_fit``.
    temperature_ : float
        Temperature T; with a schedule, the first one.
    n_presentations_ : int
        Number of rows shown.
    n_learned_ : int
        Number of presentations after which no cause changed its unit.
    total_, activity_, lower_bound_, lower_bounds_, n_iter_, converged_, outcome_, n_features_in_
        As in :class:`RestrictedMaximalCauses`; an iteration is an epoch or a batch. ``n_iter_`` counts epochs of the
        network that is kept; callbacks are called for those of all networks, one network after the other.

    Examples
    --------
    >>> from multicause import SoftmaxNetwork
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, random_state=0)
    >>> network = SoftmaxNetwork(10, random_state=0).fit(bars.data)
    >>> network.components_.shape
    (10, 25)
    """

    _constraints = {
        "temperature": [Options(str, {"auto"}), POSITIVE],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "component_noise": [NOT_NEGATIVE, None],
        "annealing": [LinearCooling, None],
        "hold": [COUNT],
    }
    _results = ("temperature_", "n_presentations_", "n_learned_")

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
        hold: int = 4000,
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        causes: ArrayLike | None = None,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn from the rows of X, epoch after epoch, until units no longer change the cause they represent.

        Parameters
        ----------
        X, y, sample_weight, resume
            As for :meth:`multicause.MaximalCauses.fit`; rows are shown in proportion to their weights. Of data in files
            or on a cluster that exceed the memory budget of the engine, a random sample is learned from, with a
            warning.
        causes : array-like of shape (n_causes, n_features), optional
            True causes, if they are known, as in a benchmark: learning then ends when each of them, shown alone, has
            had its own unit for ``hold`` presentations (MCA08 appendix E.2).
        """
        X, weights = self._rows_in_memory(X, sample_weight)
        probes = None if causes is None else np.asarray(causes, dtype=float)
        solver = replace(self._solver(), probes=probes)
        return self._fit(solver, X, y, None if sample_weight is None else weights, resume, probes)

    def _solver(self) -> HebbianEpochs:
        settings = self.get_params(deep=False)
        rule = {
            name: settings[name] for name in ("temperature", "learning_rate", "component_noise", "annealing", "hold")
        }
        sizes: dict[str, Any] = {"max_iter": self.max_iter, "n_starts": self.n_init, "n_units": self.n_components}
        return HebbianEpochs(**sizes, **rule, total=self.total)
