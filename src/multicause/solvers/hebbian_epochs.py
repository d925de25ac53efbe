"""Fit of softmax networks: run epochs until a network has learned, and choose the best of several networks.

The epochs themselves are compiled (:mod:`multicause.solvers.hebbian`). After each epoch the mean weights are evaluated
as the components of the generative model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from multicause.annealing import Annealing, LinearCooling, choose_annealing
from multicause.arrays import Array, generator, key_from
from multicause.em.driver import run_loop
from multicause.em.e_step import expect
from multicause.em.online import Online, continued
from multicause.em.results import (
    FitResult,
    Progress,
    batch_result,
    one_start,
    per_row,
    result_of_one,
    start_of,
)
from multicause.em.solver import FitProblem, Solver
from multicause.em.usage import has_died
from multicause.engines import blocks
from multicause.engines.base import Data
from multicause.inference import arrange
from multicause.model import Model, Statistics
from multicause.outcomes import Outcome
from multicause.records import Parameters
from multicause.search.critical_temperature import critical_temperature
from multicause.search.restarts import with_more_states
from multicause.search.sample import sample_for_search
from multicause.solvers import hebbian
from multicause.solvers.hebbian_splitting import split_units
from multicause.solvers.presentation import repetitions, rows_to_show

# Default temperature of learning, as a fraction of the critical temperature.
BELOW_CRITICAL = 0.4
# Default standard deviation of noise on the weights, relative to their mean: 0.02 for bars of value 10 (MCA08 §6.4).
NOISE = 0.01
# Presentations for which units must keep their causes before learning ends: those of MCA08 appendix E.2, and the same
# in epochs where the causes are not known. Of twelve single networks on 8×8 bars, 8 found all bars if four epochs were
# enough, and 11 with sixteen.
LEAST_HOLD, HOLD_EPOCHS = 4000, 12
# Units are copies if their mean weights differ by less than this fraction of the largest one. Noise and single rows
# leave differences of 0.01 to 0.035 between units that share a cause; units of different causes differ by 0.3 and more.
SAME_UNITS = 0.05


class NetworkResult(NamedTuple):
    """Result of learning one network."""

    parameters: Parameters
    statistics: Statistics  # E-step statistics at temperature one, with a leading axis of one start
    network: hebbian.Network
    bounds: tuple[float, ...]
    temperatures: tuple[float, ...]
    learned: bool
    stopped: bool
    evidence: float  # mean log evidence under the recognizer, by which networks are compared


class HebbianState(NamedTuple):
    """State of the loop over the epochs of one network."""

    network: hebbian.Network
    weights: Any  # mean weights of the epochs since a unit last changed its cause
    n_epochs: int = 0  # number of those epochs
    statistics: Any = None
    bounds: tuple[float, ...] = ()
    temperatures: tuple[float, ...] = ()
    learned: bool = False
    stopped: bool = False


class NetworksState(NamedTuple):
    """State of the loop over networks."""

    number: int = 0  # index of the next network
    best: NetworkResult | None = None
    stopped: bool = False


@dataclass(frozen=True, kw_only=True)
class HebbianEpochs(Solver):
    """Epochs of Hebbian learning of one network after the other, of which the one with the highest evidence is kept.

    The settings are those of :class:`multicause.SoftmaxNetwork`. If causes are known, a single network learns until it
    has found them.
    """

    n_units: int
    temperature: str | float = "auto"
    learning_rate: float = 1.0
    component_noise: float | None = None
    annealing: LinearCooling | None = None
    hold: int | None = None
    total: float | None = None
    needs_rows_in_memory: ClassVar[bool] = True
    needs_complete: ClassVar[str] = "compares responses of units to complete rows"

    @property
    def result_names(self) -> tuple[str, ...]:
        """Return the names of what is known of the kept network besides its weights."""
        return ("temperature_", "n_presentations_", "n_learned_")

    def recognizer(self, model: Model, n_components: int, n_features: int) -> Model:
        """Return the model with more states, by which networks are also compared."""
        return with_more_states(model, n_components, n_features)

    @property
    def schedule(self) -> Annealing:
        """Return the annealing schedule."""
        return choose_annealing(self.annealing)

    def n_networks(self, problem: FitProblem) -> int:
        """Return the number of networks that are compared."""
        return self.n_starts if problem.known_causes is None else 1

    def presentations_to_hold(self, problem: FitProblem, n_shown: int) -> int:
        """Return for how many presentations units must keep their causes, given the presentations of an epoch."""
        if self.hold is not None:
            return self.hold
        return max(LEAST_HOLD, HOLD_EPOCHS * n_shown) if problem.known_causes is None else LEAST_HOLD

    def most_iterations(self, problem: FitProblem) -> int:
        """Return the number of epochs of all networks."""
        return self.n_networks(problem) * self.max_iter

    def learn(self, problem: FitProblem) -> FitResult:
        """Learn networks one after the other, each with its own start and key, and return the best.

        An epoch shows rows as often as their weights say. After a network that a callback stopped, no other begins, and
        the result counts as stopped.
        """
        probes = None if problem.known_causes is None else _checked(problem.known_causes, problem.data, self.n_units)
        rule = self.rule(start_of(problem.starts), self._initial_temperature(problem))
        keys = [key_from(problem.random) for _ in range(self.n_networks(problem))]
        comparison_data = arrange(problem.recognizer, problem.data, self.n_units) if len(keys) > 1 else None
        X, weights = problem.data.look()  # all rows, which are in memory (``needs_rows_in_memory``)
        rows, expected = _filled_up(X), repetitions(weights)

        def step(state: NetworksState) -> NetworksState:
            best, number = state.best, state.number
            run = self._learn_network(problem, rule, comparison_data, number, rows, expected, keys, probes)
            if best is None or run.evidence > best.evidence:
                best = run
            return NetworksState(len(keys) if run.stopped else number + 1, best, run.stopped)

        end = run_loop(
            NetworksState,
            NetworksState,
            step,
            goes_on=lambda state: state.number < len(keys),
            journal=problem.journal,
        )
        best = end.best
        assert best is not None
        if probes is None and self.annealing is None and not end.stopped:
            best = self._split(problem, best, np.asarray(X), expected)
        statistics = start_of(jax.device_get(best.statistics))
        bound, n_iter = float(statistics.bound / statistics.seen), len(best.bounds)
        result = result_of_one(
            best.parameters,
            statistics,
            best.bounds,
            Outcome.CONVERGED if best.learned else None,
            temperatures=best.temperatures,
            n_iter=n_iter,
            annealing=self.schedule,
            results=_results(rule, best.network),
        )
        result = result._replace(bound=bound)
        if end.stopped:
            return result._replace(outcome=Outcome.STOPPED, converged=False)
        if not np.isfinite(bound):
            return result._replace(outcome=Outcome.NON_FINITE)
        return result._replace(outcome=Outcome.CAUSE_DIED) if _unit_died(problem, best.parameters) else result

    def _split(self, problem: FitProblem, best: NetworkResult, rows: np.ndarray, expected: np.ndarray) -> NetworkResult:
        """Return a network whose units for several causes at once are split (:mod:`.hebbian_splitting`)."""
        if not np.isfinite(best.bounds[-1]):
            return best
        data = arrange(problem.recognizer, problem.data, self.n_units)

        def evidence(parameters: Parameters) -> float:
            return _bound_of(_expect(problem.recognizer, data, parameters))

        parameters = jax.device_get(best.parameters)
        split = split_units(problem.recognizer, data, parameters, rows, expected, evidence)
        if split is parameters:
            return best
        return best._replace(parameters=split, statistics=_expect(problem.model, problem.data, split))

    def learn_batch(self, problem: FitProblem, before: Online | None) -> tuple[FitResult, Online | None]:
        """Learn from one more batch: show each row once, in the order given, or as often as its weight says."""
        start = start_of(problem.starts)
        if len(start.components) != self.n_units:
            raise ValueError(
                f"The network has {len(start.components)} units, but n_components={self.n_units} now. Set it back, or "
                "begin another network with clone(network)."
            )
        n_before, presented = problem.n_batches, problem.results.get("n_presentations_", 0)
        rule = self.rule(start, self._initial_temperature(problem))
        # Fold in the number of presentations: otherwise the same seed would repeat its noise in every batch.
        key = jax.random.fold_in(key_from(problem.random), presented)
        network = hebbian.begin(start.components, None)._replace(presented=np.asarray(presented))
        X, weights = problem.data.look()
        shown = hebbian.Shown.of(_filled_up(X), rows_to_show(weights, generator(key, n_before)))
        network = hebbian.stream(network, shown, key, rule, self.annealing, np.asarray(n_before))
        parameters = start._replace(components=network.weights)
        statistics = start_of(jax.device_get(_expect(problem.model, problem.data, parameters)))
        bound, n_batches = float(statistics.bound / statistics.seen), n_before + 1
        result = batch_result(
            jax.device_get(parameters),
            bound,
            n_batches,
            finite=bool(np.isfinite(bound)),
            temperature=float(hebbian.temperature_of(rule, self.annealing, n_batches)),
            annealing=self.schedule,
            results=_results(rule, network),
        )
        return result, continued(statistics, n_batches)

    def rule(self, parameters: Parameters, temperature: float) -> hebbian.HebbianRule:
        """Return the constants of the learning rule, with defaults from the initial or current weights."""
        activity, weights = parameters.prior["activity"][0], parameters.components
        noise = NOISE * float(weights.mean()) if self.component_noise is None else self.component_noise
        total = float(weights[0].sum()) if self.total is None else float(self.total)
        numbers = (self.learning_rate, noise, total, activity / (1 - activity), temperature)
        values: Any = [np.asarray(number, weights.dtype) for number in numbers]
        return hebbian.HebbianRule(*values)

    def _initial_temperature(self, problem: FitProblem) -> float:
        """Return the fixed temperature, or that at which the schedule begins; by default it follows from the data.

        Raises ValueError for settings that would have no effect.
        """
        if self.annealing is None:
            if self.temperature != "auto":
                return float(self.temperature)
            if "temperature_" in problem.results:
                return float(problem.results["temperature_"])
            sample = sample_for_search(problem, self.n_starts)
            return max(
                1.0, BELOW_CRITICAL * critical_temperature(problem.model, sample, problem.starts, jax.random.key(0))
            )
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
        return float(self.annealing.start)

    def _learn_network(
        self,
        problem: FitProblem,
        rule: hebbian.HebbianRule,
        comparison_data: Data | None,
        number: int,
        rows: Array,
        expected: np.ndarray,
        keys: Sequence[Array],
        probes: np.ndarray | None,
    ) -> NetworkResult:
        """Run epochs from one start until the network has learned, or for ``max_iter`` epochs."""
        start = start_of(problem.starts, number)

        def step(state: HebbianState) -> HebbianState:
            key = jax.random.fold_in(keys[number], state.network.presented)
            repeated = rows_to_show(expected, generator(key, 0))
            pool = hebbian.Shown.of(rows, repeated)
            network = hebbian.epoch(state.network, pool, key, rule, self.annealing, probes is not None)
            # A schedule changes the temperature, and with it the weights, from epoch to epoch.
            kept = self.annealing is None and bool(network.since <= state.network.presented)
            n_epochs = state.n_epochs + 1 if kept else 1
            weights = state.weights + (np.asarray(network.average) - state.weights) / n_epochs
            statistics = _expect(problem.model, problem.data, start._replace(components=weights))
            bounds = (*state.bounds, _bound_of(statistics))
            temperature = float(hebbian.temperature_of(rule, self.annealing, len(bounds)))
            hold = self.presentations_to_hold(problem, len(repeated))
            learned = hebbian.has_learned(network, len(repeated), hold, self.annealing)
            temperatures = (*state.temperatures, temperature)
            return HebbianState(network, weights, n_epochs, statistics, bounds, temperatures, learned)

        def report(before: HebbianState, after: HebbianState) -> Iterator[Progress]:
            now = one_start(start._replace(components=after.weights))
            seen = (np.array(after.temperatures[-1:]), np.array(after.bounds[-1:]), now, after.statistics)
            yield Progress(len(after.bounds) - 1, *seen, results=_results(rule, after.network))

        state = run_loop(
            HebbianState,
            lambda: HebbianState(hebbian.begin(start.components, probes), np.zeros_like(start.components)),
            step,
            goes_on=lambda state: len(state.bounds) < self.max_iter and not (state.learned or state.stopped),
            report=report,
            stop=lambda state: state._replace(stopped=True),
            **problem.loop,
        )
        parameters = start._replace(components=state.weights)
        evidence = 0.0
        if comparison_data is not None:
            evidence = _bound_of(_expect(problem.recognizer, comparison_data, parameters))
        return NetworkResult(
            parameters,
            state.statistics,
            state.network,
            state.bounds,
            state.temperatures,
            state.learned,
            state.stopped,
            -np.inf if np.isnan(evidence) else evidence,
        )


def _filled_up(X: np.ndarray) -> Array:
    """Return rows (N, D) on the device, filled up to a rounded number, so that similar sizes share programs."""
    filled, _ = blocks.filled_up(X, np.ones(len(X), X.dtype), blocks.rounded(len(X), up=True))
    return jax.device_put(np.array(filled))  # a copy: on a CPU, device_put takes the user's array over


def _expect(model: Model, data: Data, parameters: Parameters) -> Statistics:
    """Compute the E-step statistics of all data at temperature one, with a leading axis of one start."""
    return data.sum(partial(expect, model), one_start(parameters), np.ones(1))


def _bound_of(statistics: Statistics) -> float:
    """Return the mean bound per row of the statistics of :func:`_expect`."""
    return float(per_row(statistics, "bound")[0][0])


def _unit_died(problem: FitProblem, parameters: Parameters) -> bool:
    """Return whether a unit is unused in recognition, or a copy of another.

    Usage is measured with the states used for recognition: units whose causes hardly ever occur alone are unused in the
    single causes and pairs that the network learns from.
    """
    data = arrange(problem.recognizer, problem.data, len(parameters.components))
    sums = jax.device_get(_expect(problem.recognizer, data, parameters))
    return has_died(parameters, start_of(sums), data, same=SAME_UNITS)


def _results(rule: hebbian.HebbianRule, network: hebbian.Network) -> dict[str, Any]:
    """Return the fitted attributes that only networks have."""
    return {
        "temperature_": float(rule.temperature),
        "n_presentations_": int(network.presented),
        "n_learned_": int(network.since),
    }


def _checked(causes: np.ndarray, data: Data, n_units: int) -> np.ndarray:
    """Return known causes in the dtype of the data; raise ValueError if they do not suit data or network."""
    if causes.ndim != 2 or causes.shape[1] != data.n_features or not 1 <= len(causes) <= n_units:
        raise ValueError(
            f"causes must have shape (n_causes, {data.n_features}), with at most n_components={n_units} of them, "
            f"because each needs a separate unit; got shape {causes.shape}."
        )
    if not (causes >= 0).all() or np.isinf(causes).any():
        raise ValueError("causes must be finite and not negative; they hold negative values, NaN or infinity.")
    return causes.astype(data.dtype)
