"""A neural network that learns maximal causes online, one observation at a time.

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

from multicause.annealing import LinearCooling
from multicause.arrays import double_precision, generator, key_from
from multicause.callbacks.adapter import FitSession, History
from multicause.em import online
from multicause.em.e_step import expect
from multicause.em.initialization import InitialConditions, choose_annealing, first_moments
from multicause.em.results import Progress, has_died, one_start, start_of
from multicause.engines import Data, Engine
from multicause.estimators.base import outcome_of_batch, validate_weights, warn_of
from multicause.model import Model, Parameters
from multicause.models.restricted_maximal_causes import RestrictedCauses, with_more_states
from multicause.outcomes import Outcome
from multicause.search.critical_temperature import critical_temperature
from multicause.solvers import hebbian
from multicause.solvers.hebbian_epochs import HebbianProblem, NetworkModel, ending, learn_networks
from multicause.solvers.presentation import rows_to_show

# Default temperature of learning, as a fraction of the critical temperature.
BELOW_CRITICAL = 0.4
# Default standard deviation of noise on the weights, relative to their mean: 0.02 for bars of value 10 (MCA08 §6.4).
NOISE = 0.01
# Units are copies if their mean weights differ by less than this fraction of the largest one. Noise and single rows
# leave differences of 0.01 to 0.035 between units that share a cause; units of different causes differ by 0.3 and more.
SAME_UNITS = 0.05


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
        """Learn from the rows of X, epoch after epoch, until units no longer change the cause they represent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, non-negative. Of data in files or on a cluster that exceed the memory budget of the engine, a
            random sample is learned from, with a warning.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k is equivalent to k repetitions of the row: rows are shown in proportion to their weights.
        causes : array-like of shape (n_causes, n_features), optional
            True causes, if they are known, as in a benchmark: learning then ends when each of them, shown alone, has
            had its own unit for ``hold`` presentations (MCA08 appendix E.2).
        resume : path-like, optional
            Checkpoint of this fit to resume from, or the folder with its checkpoints.
        """
        X, weights = self._rows_in_memory(X, sample_weight)
        probes = self._validate_causes(causes, X)
        n_starts = self.n_init if probes is None else 1
        with double_precision(), self._watched(resume, X, weights, probes) as session:
            problem = self._begin(X, weights, session.random, compared=n_starts > 1)
            keys = [key_from(session.random) for _ in range(n_starts)]
            describe = partial(self._network_so_far, problem, session)
            given = None if sample_weight is None else weights
            session.watch(X, y, given, describe, n_tasks=n_starts * self.max_iter)
            settings: dict[str, Any] = {"max_iter": self.max_iter, "watch": session, "journal": session.journal}
            best = learn_networks(problem, jnp.asarray(X), weights, keys, probes, **settings)
            self._keep_network(problem, best.found, best.network, ended=True)
        self.lower_bounds_, self.temperatures_ = np.array(best.bounds), np.array(best.temperatures)
        if best.stopped:
            self.outcome_, self.converged_ = Outcome.STOPPED.value, False
        warn_of(Outcome(self.outcome_), self)
        return self

    def _network_so_far(
        self, problem: HebbianProblem, session: FitSession, progress: Progress, seen: History
    ) -> dict[str, Any]:
        network = session.journal.innermost.network
        return {**self._so_far(problem.model, progress, seen), **_results_of(problem, network)}

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one batch of a stream: show each row once, in the order given.

        A weight is the number of times that a row is shown; one that is not an integer is rounded up or down at random
        such that the mean is right. The first batch determines the initial weights, and C and the temperature if they
        are not given, so it should be typical. Settings may change from batch to batch, except the number of units.
        """
        first = not hasattr(self, "components_")
        X = self._validate_rows(X, reset=first)
        weights, random = validate_weights(sample_weight, X), check_random_state(self.random_state)
        with double_precision():
            if first:
                problem = self._begin(X, weights, random, compared=False)
                parameters = start_of(problem.starts)
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
                problem = self._course(model, data, one_start(parameters), temperature)
                presented, n_iter = self.n_presentations_, self.n_iter_
                history = np.array([self.lower_bounds_, self.temperatures_])
            # Fold in the number of presentations: otherwise the same seed would repeat its noise in every batch.
            key = jax.random.fold_in(key_from(random), presented)
            network = hebbian.begin(parameters.components, None)._replace(presented=jnp.asarray(presented))
            shown = rows_to_show(weights, generator(key, n_iter))
            network = hebbian.stream(
                network, jnp.asarray(X[shown]), key, problem.rule, self.annealing, jnp.asarray(n_iter)
            )
            parameters = parameters._replace(components=network.weights)
            found = ending(parameters, problem.expect(parameters), n_iter + 1, learned=False)
            self._keep_network(problem, found, network, ended=False)
            last = np.array([[self.lower_bound_], [problem.temperature(n_iter + 1)]])
        self.lower_bounds_, self.temperatures_ = np.concatenate([history, last], axis=1)
        outcome = outcome_of_batch(bool(found.finite))
        self.outcome_ = outcome.value
        if outcome is Outcome.NON_FINITE:
            warn_of(outcome, self)
        return self

    def _begin(self, X: np.ndarray, weights: np.ndarray, random: Any, *, compared: bool) -> HebbianProblem:
        """Return the problem before the first presentation, with a judge if several networks are to be ``compared``."""
        data = self._engine().load(X, weights)
        model = self._wire(data)
        model.noise.check_data(X)
        data = self._in_blocks(data, model, 1)
        starts = self._starts(InitialConditions(model, first_moments(data), data, random, self.n_init))
        temperature = self._checked_temperature()
        if temperature == "auto":
            sample = self._search_data(model, data, random)
            critical = critical_temperature(model, sample, starts, jax.random.key(0))
            temperature = max(1.0, BELOW_CRITICAL * critical)
        problem = self._course(model, data, starts, float(temperature))
        if not compared:
            return problem
        judge = with_more_states(model, *starts.components.shape[1:])
        return problem._replace(judge=(judge, self._arranged(data, judge, self.n_components, 1)))

    def _course(self, model: Model, data: Data, starts: Parameters, temperature: float) -> HebbianProblem:
        """Return the problem of learning one network, without a judge to compare networks."""
        rule = self._rule(start_of(starts), temperature)
        return HebbianProblem(model, None, data, starts, rule, self.annealing, self.hold)

    def _checked_temperature(self) -> str | float:
        """Return the first temperature, or "auto"; raise ValueError for settings that would have no effect."""
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

    def _rule(self, parameters: Parameters, temperature: float) -> hebbian.HebbianRule:
        activity = parameters.prior["activity"][0]
        noise = self.component_noise
        noise = NOISE * float(parameters.components.mean()) if noise is None else noise
        total = float(parameters.components[0].sum()) if self.total is None else float(self.total)
        numbers = (self.learning_rate, noise, total, activity / (1 - activity), temperature)
        return hebbian.HebbianRule(*(jnp.asarray(number, parameters.components.dtype) for number in numbers))

    def _keep_network(
        self, problem: HebbianProblem, found: NetworkModel, network: hebbian.Network, *, ended: bool
    ) -> None:
        self._keep(problem.model, found.parameters)
        self._online = online.continued(found.statistics, found.n_iter)
        self._keep_threshold(problem.data)
        self.annealing_ = choose_annealing(self.annealing)
        self.lower_bound_ = bound = float(found.statistics.bound / found.statistics.seen)
        self.lower_bounds_, self.temperatures_ = np.array([bound]), np.ones(1)
        self.n_iter_, self.converged_ = found.n_iter, found.learned
        outcome = Outcome.CONVERGED if found.learned else Outcome.MAX_ITER
        if not found.finite:
            outcome = Outcome.NON_FINITE
        elif ended and self._has_died(problem, found):
            outcome = Outcome.CAUSE_DIED
        self.outcome_ = outcome.value
        for name, value in _results_of(problem, network).items():
            setattr(self, name, value)

    def _has_died(self, problem: HebbianProblem, found: NetworkModel) -> bool:
        """Return whether a unit is unused in recognition, or a copy of another.

        Usage is measured with the states used for recognition: units whose causes hardly ever occur alone are unused in
        the single causes and pairs that the network learns from.
        """
        data = self._arranged(problem.data, self._recognizer, len(found.parameters.components), 1)
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


def _results_of(problem: HebbianProblem, network: hebbian.Network) -> dict[str, Any]:
    """Return the fitted attributes that only networks have."""
    return {
        "temperature_": float(problem.rule.temperature),
        "n_presentations_": int(network.presented),
        "n_learned_": int(network.since),
    }
