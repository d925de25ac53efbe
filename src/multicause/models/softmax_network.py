"""A neural network that finds maximal causes, one observation at a time.

MCA08: J. Lücke and M. Sahani, Maximal Causes for Non-linear Component Extraction, JMLR 9 (2008) 1227–1267.
GSN07: J. Lücke and M. Sahani, Generalized Softmax Networks for Non-linear Component Extraction, ICANN 2007.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options

from multicause.arrays import double_precision, generator, key_from
from multicause.callbacks.adapter import Fitting, Seen
from multicause.engines import Data, Engine
from multicause.learning import hebbian, online
from multicause.learning.annealing import LinearCooling
from multicause.learning.convergence import Outcome
from multicause.learning.critical_temperature import critical_temperature
from multicause.learning.epochs import Course, Found, ending, learn_networks
from multicause.learning.expectation import expect
from multicause.learning.initialization import Outset, choose_annealing, first_moments
from multicause.learning.presentation import rows_to_show
from multicause.learning.results import Progress, has_died, one_start, start_of
from multicause.model import Model, Parameters
from multicause.models.restricted_maximal_causes import RestrictedCauses, with_more_states
from multicause.shell import outcome_of_batch, validate_weights, warn_of

# Part of the critical temperature at which the network learns by default.
BELOW_CRITICAL = 0.4
# Standard deviation of noise on the weights by default, as part of their mean: 0.02 for bars of value 10 (MCA08 §6.4).
NOISE = 0.01
# Units are copies if their mean weights differ by less than this part of the largest one. Noise and single rows leave
# differences of 0.01 to 0.035 between units that share a cause, while units of different causes differ by 0.3 and more.
SAME_UNITS = 0.05


class SoftmaxNetwork(RestrictedCauses):
    """R-MCA_NN: Hebbian learning with a generalized softmax and divisive normalisation (MCA08 §5, GSN07).

    H units compete for each row y; the response of unit h is the posterior probability that cause h alone made y, where
    pairs of causes compete too (MCA08 eq. 25), and every unit learns by its response::

        g_h = exp(I_h/T) / (Σ_h' exp(I_h'/T) + π/(1 − π) Σ_{a<b} exp(I_ab/T))
        W_h ← C (W_h + ε g_h y + σ η) / Σ_d (…)

    It is the online version of :class:`RestrictedMaximalCauses`, and shares its generative model: ``transform``,
    ``sample``, ``score_samples`` and the rest are the same. Noise from single rows and on the weights carries it out of
    local optima, so it finds causes more reliably than any batch algorithm, but measures them less exactly: use it as
    ``init`` of :class:`MaximalCauses` (MCA08 §7.4).

    The defaults are the network that MCA08 calls R-MCA_NN and GSN07 NN_fast, with temperature, noise and start from the
    data. NN_slow is ``annealing=LinearCooling(18, n_iter=150, hold=1/3, settle=0), max_iter=200, learning_rate=0.1,
    component_noise=0, init="random"``.

    Parameters
    ----------
    n_components : int, default=10
        Number H of units.
    total : float, optional
        C, the sum of the weights of each unit; by default from the data's mean.
    activity : float, optional
        π, by default two active causes per row.
    temperature : "auto" or float, default="auto"
        T, fixed. The papers use 16 for bars of value 10 on 5×5 pixels and more, and 3 for short bars on 3×3. "auto"
        takes a part of the temperature above which all units stay alike, which it finds from the data.
    learning_rate : float, default=1.0
        ε in (0, 1]; lower rates average over more rows.
    component_noise : float, optional
        σ, standard deviation of noise on the weights at each presentation, in units of the data; by default a hundredth
        of the mean weight.
    annealing : LinearCooling or None, default=None
        A schedule in epochs, instead of a fixed temperature; it tempers π too (GSN07 eq. 20). Each batch of
        ``partial_fit`` is an epoch. ``max_iter`` must leave time for the whole schedule.
    hold : int, default=4000
        Learning ends when all causes have kept their units for so many presentations. Where the causes are not given
        to ``fit``, the mean weights of all units that respond often stand for them: whatever the network has found must
        stay with the unit that found it.
    max_iter : int, default=100
        Most epochs; in an epoch as many rows are shown as there are, drawn at random. Rows with weights are drawn in
        proportion to them, as many as the weights add up to, but at least as many as have a weight, and at most 16
        times as many.
    n_init : int, default=3
        Number of networks that learn, each from a start of its own; the one with the highest likelihood is kept. Where
        the causes are given to ``fit`` there is only one, which learns until it has found them.
    init : {"mean", "random", "data"} or array-like of shape (n_components, n_features), default="mean"
        Weights before learning, which are scaled to the sum C: random around a flat row ("random", as in the papers),
        around half of that and half of the mean row ("mean"), or rows. Where some features are much stronger than
        others, after a flat start the first unit that learns anything is the best for everything.
    random_state : int, RandomState or None
        Seed of start, order and noise.
    verbose : int, default=0
        1 writes a line per epoch.
    engine : Engine, optional
        Where data lies for recognition and bounds.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights: their mean over the last epoch after ``fit``, the present ones after ``partial_fit``.
    temperature_ : float
        T, the first one where there is a schedule.
    n_presentations_ : int
        Number of rows shown.
    n_learned_ : int
        Presentation after which no cause changed its unit.
    total_, activity_, lower_bound_, lower_bounds_, n_iter_, converged_, outcome_, n_features_in_
        As in :class:`RestrictedMaximalCauses`; an iteration is an epoch or a batch. ``n_iter_`` counts epochs of the
        network that is kept; callbacks are told of those of all networks, one network after the other.

    Examples
    --------
    >>> from multicause import SoftmaxNetwork
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(500, random_state=0)
    >>> network = SoftmaxNetwork(10, random_state=0).fit(bars.data)
    >>> network.components_.shape
    (10, 25)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **RestrictedCauses._parameter_constraints,
        "temperature": [Options(str, {"auto"}), Interval(Real, 0, None, closed="neither")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "component_noise": [Interval(Real, 0, None, closed="left"), None],
        "annealing": [LinearCooling, None],
        "hold": [Interval(Integral, 1, None, closed="left")],
    }
    tol = 0.0
    annealing: LinearCooling | None
    _results = ("temperature_", "n_presentations_", "n_learned_")
    _allows_missing = False
    _needs_all_values = "compares responses of units to complete rows"

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
        """Show the rows of X, epoch after epoch, until what was found stays where it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, not negative.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k counts like k repetitions of the row: rows are shown in proportion to their weights.
        causes : array-like of shape (n_causes, n_features), optional
            True causes, where they are known, as in a benchmark: learning then ends when each of them, shown alone, has
            kept a unit of its own for ``hold`` presentations (MCA08 appendix E.2).
        resume : path-like, optional
            A checkpoint of this very fit, or the folder with its checkpoints, to go on from.
        """
        X = self._validate_rows(X, reset=True)
        weights, probes = validate_weights(sample_weight, X), self._validate_causes(causes, X)
        n_starts = self.n_init if probes is None else 1
        with double_precision(), self._watched(resume, X, weights, probes) as fitting:
            course = self._begin(X, weights, fitting.random, compared=n_starts > 1)
            keys = [key_from(fitting.random) for _ in range(n_starts)]
            describe = partial(self._network_so_far, course, fitting)
            given = None if sample_weight is None else weights
            fitting.watch(X, y, given, describe, n_tasks=n_starts * self.max_iter)
            settings: dict[str, Any] = {"max_iter": self.max_iter, "watch": fitting, "journal": fitting.journal}
            best = learn_networks(course, jnp.asarray(X), weights, keys, probes, **settings)
            self._keep_network(course, best.found, best.network, ended=True)
        self.lower_bounds_, self.temperatures_ = np.array(best.bounds), np.array(best.temperatures)
        if best.stopped:
            self.outcome_, self.converged_ = Outcome.STOPPED.value, False
        warn_of(Outcome(self.outcome_), self)
        return self

    def _network_so_far(self, course: Course, fitting: Fitting, progress: Progress, seen: Seen) -> dict[str, Any]:
        network = fitting.journal.innermost.network
        return {**self._so_far(course.model, progress, seen), **_results_of(course, network)}

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from a stream: show each row of one batch once, in the order given.

        A weight is the number of times that a row is shown; one that is not whole is rounded up or down by chance such
        that the mean is right. The first batch sets start, and C and the temperature if they are not given, so it
        should be typical. Settings may change from batch to batch, but for the number of units.
        """
        first = not hasattr(self, "components_")
        X = self._validate_rows(X, reset=first)
        weights, random = validate_weights(sample_weight, X), check_random_state(self.random_state)
        with double_precision():
            if first:
                course = self._begin(X, weights, random, compared=False)
                parameters = start_of(course.starts)
                presented, n_iter, history = 0, 0, np.empty((2, 0))
            else:
                if self.n_components != len(self.components_):
                    raise ValueError(
                        f"The network has {len(self.components_)} units, but n_components={self.n_components} now. Set "
                        "it back, or begin another network with clone(network)."
                    )
                model, X = self._model, X.astype(self.components_.dtype)
                weights = weights.astype(X.dtype)
                model.noise.check_data(X)
                parameters = jax.tree.map(jnp.asarray, self._parameters)
                data = self._in_blocks(self._engine().load(X, weights), model, 1, fitted=True)
                temperature = self._checked_temperature()
                temperature = self.temperature_ if temperature == "auto" else float(temperature)
                course = self._course(model, data, one_start(parameters), temperature)
                presented, n_iter = self.n_presentations_, self.n_iter_
                history = np.array([self.lower_bounds_, self.temperatures_])
            # A seed that is repeated for every batch must not repeat its noise.
            key = jax.random.fold_in(key_from(random), presented)
            network = hebbian.begin(parameters.components, None)._replace(presented=jnp.asarray(presented))
            shown = rows_to_show(weights, generator(key, n_iter))
            network = hebbian.stream(
                network, jnp.asarray(X[shown]), key, course.rule, self.annealing, jnp.asarray(n_iter)
            )
            parameters = parameters._replace(components=network.weights)
            found = ending(parameters, course.expect(parameters), n_iter + 1, learned=False)
            self._keep_network(course, found, network, ended=False)
            last = np.array([[self.lower_bound_], [course.temperature(n_iter + 1)]])
        self.lower_bounds_, self.temperatures_ = np.concatenate([history, last], axis=1)
        outcome = outcome_of_batch(bool(found.finite))
        self.outcome_ = outcome.value
        if outcome is Outcome.NON_FINITE:
            warn_of(outcome, self)
        return self

    def _begin(self, X: np.ndarray, weights: np.ndarray, random: Any, *, compared: bool) -> Course:
        """Everything before the first presentation; with a judge where several networks are to be ``compared``."""
        data = self._engine().load(X, weights)
        model = self._wire(data)
        model.noise.check_data(X)
        data = self._in_blocks(data, model, 1)
        starts = self._starts(Outset(model, first_moments(data), data, random, self.n_init))
        temperature = self._checked_temperature()
        if temperature == "auto":
            sample = self._search_data(model, data, random)
            critical = critical_temperature(model, sample, starts, jax.random.key(0))
            temperature = max(1.0, BELOW_CRITICAL * critical)
        course = self._course(model, data, starts, float(temperature))
        if not compared:
            return course
        judge = with_more_states(model, *starts.components.shape[1:])
        return course._replace(judge=(judge, self._arranged(data, judge, self.n_components, 1)))

    def _course(self, model: Model, data: Data, starts: Parameters, temperature: float) -> Course:
        """Without a judge, as one network needs none."""
        rule = self._rule(start_of(starts), temperature)
        return Course(model, None, data, starts, rule, self.annealing, self.hold)

    def _checked_temperature(self) -> str | float:
        """The first temperature, or that it is to be found; what would have no effect is refused."""
        if self.annealing is None:
            return self.temperature
        self.annealing.validate()
        if self.temperature != "auto":
            raise ValueError(
                f"A network has a fixed temperature or a schedule; got temperature={self.temperature!r} and annealing="
                f"{self.annealing!r}. Leave temperature='auto', or annealing=None."
            )
        if self.annealing.component_noise > 0:
            raise ValueError(
                "The network adds noise at every presentation, not by its schedule: use SoftmaxNetwork("
                f"component_noise={self.annealing.component_noise!r}) instead of that of {self.annealing!r}."
            )
        return self.annealing.start

    def _rule(self, parameters: Parameters, temperature: float) -> hebbian.Rule:
        activity = parameters.prior["activity"][0]
        noise = self.component_noise
        noise = NOISE * float(parameters.components.mean()) if noise is None else noise
        total = float(parameters.components[0].sum()) if self.total is None else float(self.total)
        numbers = (self.learning_rate, noise, total, activity / (1 - activity), temperature)
        return hebbian.Rule(*(jnp.asarray(number, parameters.components.dtype) for number in numbers))

    def _keep_network(self, course: Course, found: Found, network: hebbian.Network, *, ended: bool) -> None:
        self._keep(course.model, found.parameters)
        self._online = online.continued(found.statistics, found.n_iter)
        self._keep_threshold(course.data)
        self.annealing_ = choose_annealing(self.annealing)
        self.lower_bound_ = bound = float(found.statistics.bound / found.statistics.seen)
        self.lower_bounds_, self.temperatures_ = np.array([bound]), np.ones(1)
        self.n_iter_, self.converged_ = found.n_iter, found.learned
        outcome = Outcome.CONVERGED if found.learned else Outcome.MAX_ITER
        if not found.finite:
            outcome = Outcome.NON_FINITE
        elif ended and self._has_died(course, found):
            outcome = Outcome.CAUSE_DIED
        self.outcome_ = outcome.value
        for name, value in _results_of(course, network).items():
            setattr(self, name, value)

    def _has_died(self, course: Course, found: Found) -> bool:
        """Whether a unit is of no use to recognition, or a copy of another.

        Of the single causes and pairs that the network learns from, some units have none, because their causes hardly
        ever come alone; the states by which rows are recognized can have them.
        """
        data = self._arranged(course.data, self._recognizer, len(found.parameters.components), 1)
        sums = data.sum(partial(expect, self._recognizer), one_start(found.parameters), jnp.ones(1))
        return has_died(found.parameters, start_of(jax.device_get(sums)), data, same=SAME_UNITS)

    def _validate_causes(self, causes: ArrayLike | None, X: np.ndarray) -> np.ndarray | None:
        if causes is None:
            return None
        causes = np.asarray(causes, dtype=X.dtype)
        if causes.ndim != 2 or causes.shape[1] != X.shape[1] or not 1 <= len(causes) <= self.n_components:
            raise ValueError(
                f"causes must have shape (n_causes, {X.shape[1]}), with at most n_components={self.n_components} of "
                f"them, because each is to have a unit of its own; got shape {causes.shape}."
            )
        if not (causes >= 0).all() or np.isinf(causes).any():
            raise ValueError("causes must be finite and not negative; they hold negative values, NaN or infinity.")
        return causes


def _results_of(course: Course, network: hebbian.Network) -> dict[str, Any]:
    """Attributes that only networks have."""
    return {
        "temperature_": float(course.rule.temperature),
        "n_presentations_": int(network.presented),
        "n_learned_": int(network.since),
    }
