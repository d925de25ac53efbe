"""Fit of softmax networks: run epochs until a network has learned, and choose the best of several networks.

The epochs themselves are compiled (:mod:`multicause.solvers.hebbian`). After each epoch the mean weights are evaluated
as the components of the generative model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing import LinearCooling
from multicause.arrays import Array, generator
from multicause.em.driver import Watch, run_loop
from multicause.em.e_step import expect
from multicause.em.results import Progress, one_start, per_row, start_of
from multicause.engines.base import Data
from multicause.model import Model, Parameters, Statistics
from multicause.persistence.journal import Journal
from multicause.solvers import hebbian
from multicause.solvers.presentation import repetitions, rows_to_show


class HebbianProblem(NamedTuple):
    """Models, data, starts and learning rule of a fit of softmax networks."""

    model: Model
    judge: tuple[Model, Data] | None  # model with more states and its data, used to compare networks
    data: Data
    starts: Parameters  # initial parameters, with a leading axis of starts
    rule: hebbian.HebbianRule
    schedule: LinearCooling | None
    hold: int

    def expect(self, parameters: Parameters) -> Statistics:
        """Compute the E-step statistics of all data at temperature one, with a leading axis of one start."""
        return self.data.sum(partial(expect, self.model), one_start(parameters), jnp.ones(1))

    def evidence(self, parameters: Parameters) -> float:
        """Compute the mean log evidence under the model with more states, by which networks are compared."""
        if self.judge is None:
            return 0.0
        model, data = self.judge
        evidence = bound_of(data.sum(partial(expect, model), one_start(parameters), jnp.ones(1)))
        return -np.inf if np.isnan(evidence) else evidence

    def has_learned(self, network: hebbian.Network, n_shown: int) -> bool:
        """Return whether the network's units are stable; an epoch has ``n_shown`` presentations."""
        return bool(hebbian.has_learned(network, n_shown, self.hold, self.schedule))

    def temperature(self, n_epochs: int) -> float:
        """Return the temperature after ``n_epochs`` epochs."""
        return float(hebbian.temperature_of(self.rule, self.schedule, n_epochs))


class NetworkModel(NamedTuple):
    """Parameters and statistics of the generative model that a network has learned."""

    parameters: Parameters
    statistics: Statistics  # E-step statistics at temperature one
    n_iter: int
    learned: bool
    finite: bool


class NetworkResult(NamedTuple):
    """Result of learning one network."""

    found: NetworkModel
    network: hebbian.Network
    bounds: tuple[float, ...]
    temperatures: tuple[float, ...]
    stopped: bool
    evidence: float


class HebbianState(NamedTuple):
    """State of the loop over the epochs of one network."""

    network: hebbian.Network
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


def learn_networks(
    problem: HebbianProblem,
    rows: Array,
    weights: np.ndarray,
    keys: Sequence[Array],
    probes: np.ndarray | None,
    *,
    max_iter: int,
    watch: Watch,
    journal: Journal,
) -> NetworkResult:
    """Learn networks one after the other, each with its own start and key, and return the best.

    An epoch shows rows as often as their weights say. After a network that a callback stopped, no other begins, and the
    result counts as stopped.
    """
    expected = repetitions(weights)

    def step(state: NetworksState) -> NetworksState:
        best, number = state.best, state.number
        start = start_of(problem.starts, number)
        run = _learn_network(problem, start, rows, expected, keys[number], probes, max_iter, watch, journal)
        if best is None or run.evidence > best.evidence:
            best = run
        return NetworksState(len(keys) if run.stopped else number + 1, best, run.stopped)

    end = run_loop(NetworksState, NetworksState, step, goes_on=lambda state: state.number < len(keys), journal=journal)
    assert end.best is not None
    return end.best._replace(stopped=end.stopped)


def _learn_network(
    problem: HebbianProblem,
    start: Parameters,
    rows: Array,
    expected: np.ndarray,
    key: Array,
    probes: np.ndarray | None,
    max_iter: int,
    watch: Watch,
    journal: Journal,
) -> NetworkResult:
    """Run epochs from one start until the network has learned, or for ``max_iter`` epochs."""

    def step(state: HebbianState) -> HebbianState:
        own = jax.random.fold_in(key, state.network.presented)
        repeated = rows_to_show(expected, generator(own, 0))
        network = hebbian.epoch(state.network, rows, repeated, own, problem.rule, problem.schedule, probes is not None)
        statistics = problem.expect(start._replace(components=network.average))
        bounds = (*state.bounds, bound_of(statistics))
        temperatures = (*state.temperatures, problem.temperature(len(bounds)))
        return HebbianState(network, statistics, bounds, temperatures, problem.has_learned(network, len(repeated)))

    def report(before: HebbianState, after: HebbianState) -> Iterator[Progress]:
        now = one_start(start._replace(components=after.network.average))
        seen = (np.array(after.temperatures[-1:]), np.array(after.bounds[-1:]), now, after.statistics)
        yield Progress(len(after.bounds) - 1, *seen)

    state = run_loop(
        HebbianState,
        lambda: HebbianState(hebbian.begin(start.components, probes)),
        step,
        goes_on=lambda state: len(state.bounds) < max_iter and not (state.learned or state.stopped),
        report=report,
        stop=lambda state: state._replace(stopped=True),
        watch=watch,
        journal=journal,
    )
    parameters = start._replace(components=state.network.average)
    found = ending(parameters, state.statistics, len(state.bounds), state.learned)
    evidence = problem.evidence(parameters)
    return NetworkResult(found, state.network, state.bounds, state.temperatures, state.stopped, evidence)


def ending(parameters: Parameters, statistics: Statistics, n_epochs: int, learned: bool) -> NetworkModel:
    """Assemble the learned model from the statistics of :meth:`HebbianProblem.expect`."""
    finite = bool(np.isfinite(bound_of(statistics)))
    return NetworkModel(parameters, start_of(jax.device_get(statistics)), n_epochs, learned, finite)


def bound_of(statistics: Statistics) -> float:
    """Return the mean bound per row of the statistics of :meth:`HebbianProblem.expect`."""
    return float(per_row(statistics, "bound")[0][0])
