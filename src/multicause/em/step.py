"""One step of EM as a pure function from state to state, for all starts at once.

A step evaluates the proposed parameters by the statistics of the last E-step, accepts or rejects them, and makes
the next proposal by an M-step. The same function is used for one start and for many, for a fit, for restarts and for
the variants of repair, and whether one program holds all data or statistics are sums over blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing import Cooling, Schedule
from multicause.arrays import Array, over_active, select
from multicause.em.convergence import Convergence, assess_step, count_quiet_iterations, has_stopped_moving
from multicause.em.data_cut import cut_is_complete, log_mass_of_cut, next_shares
from multicause.em.e_step import expect_one
from multicause.em.m_step import maximize_start, perturb_components
from multicause.model import Model, Statistics
from multicause.outcomes import Outcome
from multicause.records import Block, Parameters

# Outcomes as numbers, so that they can be part of a compiled program.
OUTCOMES = (Outcome.MAX_ITER, Outcome.CONVERGED, Outcome.BOUND_FELL, Outcome.NON_FINITE, Outcome.STOPPED)
_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}


class Limits(NamedTuple):
    """Stopping criteria of learning, and which parameters it changes, as arguments of the compiled program."""

    tol: Any  # () rise of the mean bound per iteration below which a start has converged
    max_iter: Any  # ()
    components: Any  # () whether the components are learned, as far as the model learns them
    other_parameters: Any  # () whether activities and noise are learned, as far as the model learns them


class EMState(NamedTuple):
    """State of EM between two steps: arrays on the host or on a device, with a leading axis of starts.

    Two numbers of iterations, here and in ``cooling``, have no such axis.
    """

    parameters: Parameters  # the last accepted ones
    statistics: Statistics  # statistics of the accepted parameters
    proposal: Parameters  # parameters that are evaluated next
    bound: Any  # (starts,) mean bound per row of the accepted parameters
    cooling: Cooling  # temperature of the proposal
    cooled: Any  # (starts,) whether annealing was over in the last iteration, so that its bound can be compared
    share: Any  # (starts,) share of all rows that the E-step of the proposal uses
    final_share: Any  # (starts,) that share at the end of the schedule, NaN before it is determined
    convergence: Convergence
    quiet: Any  # (starts,) consecutive iterations with little change, if the bound is no measure of progress
    learning: Any  # (starts,) which starts have not ended yet
    outcome: Any  # (starts,) indices in OUTCOMES
    last: Any  # (starts,) iterations after which each start ended
    number: Any  # (starts,) which start it is, from which its random numbers follow
    iteration: Any  # () number of steps done, −1 before the starts themselves are evaluated
    kept_states: Any = {}  # (starts, blocks, ..., n) those of each row (:mod:`multicause.em.kept_states`)


class HistoryRow(NamedTuple):
    """One row of the history of all starts: (starts,) each."""

    bound: Any
    temperature: Any
    kept: Any  # share of all rows that learning used


def begin(model: Model, schedule: Schedule, limits: Limits, starts: Parameters, block: Block, n_starts: int) -> EMState:
    """Return the state before the first E-step, on the host.

    ``starts`` has a leading axis of places for starts, of which the first ``n_starts`` are used.
    """
    places = len(starts.components)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), starts)
    temperature = jax.ShapeDtypeStruct((), np.float64)
    shapes = expect_one.eval_shape(model, block, one, temperature)
    statistics = jax.tree.map(lambda leaf: np.zeros((places, *leaf.shape), leaf.dtype), shapes)
    state = EMState(
        parameters=starts,
        statistics=statistics,
        proposal=starts,
        bound=np.full(places, np.nan),
        cooling=schedule.begin(),
        cooled=np.zeros(places, dtype=bool),
        share=np.ones(places),
        final_share=np.full(places, np.nan),
        convergence=Convergence.begin(places, is_monotone(model)),
        quiet=np.zeros(places, dtype=int),
        learning=np.arange(places) < n_starts,
        outcome=np.full(places, _CODES[Outcome.MAX_ITER]),
        last=np.full(places, int(limits.max_iter)),
        number=np.arange(places),
        iteration=np.asarray(-1),
    )
    return _with_next_shares(model, schedule, state, _first_shares)


# As single operations, of which there are hundreds, it takes a third of a second on an accelerator.
_first_shares = jax.jit(next_shares, static_argnums=0)


def is_monotone(model: Model) -> bool:
    """Return whether full EM steps of a model never lower the bound."""
    return model.update.is_monotone(model.combination) and model.posterior.monotone


def em_step(
    model: Model, schedule: Schedule, limits: Limits, key: Array, state: EMState, statistics: Statistics
) -> tuple[EMState, HistoryRow]:
    """Accept or reject the proposal given the statistics of an E-step, and propose the next one."""
    state, row = _assess_proposal(model, schedule, limits, state, statistics)
    proposed = _propose(model, schedule, limits, key, state)
    # After the last iteration there is no next proposal, which therefore must not change the outcome.
    going_on = state.learning & (state.iteration < limits.max_iter)
    proposal, learning, outcome, last = select(
        going_on,
        (proposed.proposal, proposed.learning, proposed.outcome, proposed.last),
        (state.proposal, state.learning, state.outcome, state.last),
    )
    return proposed._replace(proposal=proposal, learning=learning, outcome=outcome, last=last), row


def _assess_proposal(
    model: Model, schedule: Schedule, limits: Limits, state: EMState, statistics: Statistics
) -> tuple[EMState, HistoryRow]:
    """Accept or reject the proposal, and determine which starts have ended."""
    first = state.iteration < 0
    iteration = state.iteration + 1
    cooling, monotone = state.cooling, is_monotone(model)
    bound = statistics.bound / statistics.seen
    objective = statistics.free_energy / statistics.weight - log_mass_of_cut(model, state.proposal, state.share)
    magnitude = statistics.magnitude / statistics.weight
    cooled = schedule.cooled(cooling) & cut_is_complete(model, schedule, cooling)
    epsilon = float(jnp.finfo(state.proposal.components.dtype).eps)
    convergence, accepted = assess_step(
        state.convergence, objective, magnitude, cooled & model.posterior.ascends_bound, epsilon
    )
    convergence = select(state.learning, convergence, state.convergence)
    accepted = (accepted | first) & state.learning
    parameters, sums = select(accepted, (state.proposal, statistics), (state.parameters, state.statistics))
    state = state._replace(
        parameters=parameters,
        statistics=sums,
        cooled=schedule.cooled(cooling),
        bound=jnp.where(accepted, bound, state.bound),
        convergence=convergence,
        iteration=iteration,
    )
    row = HistoryRow(state.bound, cooling.temperature, statistics.weight / statistics.seen)
    state = _ended(state, ~jnp.isfinite(objective), Outcome.NON_FINITE, jnp.maximum(iteration - 1, 0))
    state = _ended(state, convergence.fell(monotone), Outcome.BOUND_FELL, iteration)
    state = _ended(state, convergence.converged(limits.tol, monotone), Outcome.CONVERGED, iteration)
    state = _ended(state, schedule.finished(cooling) & ~convergence.falling, Outcome.CONVERGED, iteration)
    return _ended(state, has_stopped_moving(state.quiet), Outcome.CONVERGED, iteration), row


def _propose(model: Model, schedule: Schedule, limits: Limits, key: Array, state: EMState) -> EMState:
    """Compute the next proposal by an M-step, its temperature, and the share of the rows that its E-step uses."""
    cooling, cut = state.cooling, state.share < 1
    length = jnp.where(state.learning, state.convergence.length, 0.0)
    learned = Parameters(limits.components, limits.other_parameters, limits.other_parameters, limits.other_parameters)
    proposal, finite, change = over_active(
        partial(maximize_start, model, learned), state.learning, state.statistics, state.parameters, length, cut
    )
    proposal = select(state.learning, proposal, state.parameters)
    if schedule.component_noise is not None and "components" in model.learn:
        noise = jnp.where(cooling.temperature > schedule.final, schedule.component_noise, 0.0)
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.fold_in(key, state.iteration)))(state.number)
        noisy = perturb_components(model, proposal, noise, keys)
        proposal = select(state.learning, noisy, proposal)
    state = _ended(state, ~finite, Outcome.NON_FINITE, state.iteration)
    if not model.posterior.ascends_bound:
        cooled = schedule.cooled(cooling) & cut_is_complete(model, schedule, cooling)
        quiet = count_quiet_iterations(state.quiet, change, cooled)
        state = state._replace(quiet=jnp.where(limits.tol > 0, quiet, state.quiet))
    state = state._replace(proposal=proposal, cooling=schedule.advance(cooling, change))
    return _with_next_shares(model, schedule, state)


def _with_next_shares(
    model: Model, schedule: Schedule, state: EMState, shares: Callable[..., tuple[Array, Array]] = next_shares
) -> EMState:
    """Set the share of rows that the next E-step uses."""
    if model.posterior.keep is None:
        return state
    share, final = shares(model, schedule, state.cooling, state.proposal, state.final_share)
    return state._replace(share=share, final_share=final)


def _ended(state: EMState, which: Any, why: Outcome, iteration: Any) -> EMState:
    """Return the state in which the given starts end, among those that are still learning."""
    ending = which & state.learning
    return state._replace(
        outcome=jnp.where(ending, _CODES[why], state.outcome),
        last=jnp.where(ending, iteration, state.last),
        learning=state.learning & ~ending,
    )


def stopped(state: EMState) -> EMState:
    """Return the state in which all starts were ended by the user or a callback."""
    return _ended(state, np.ones(len(state.learning), dtype=bool), Outcome.STOPPED, np.maximum(state.iteration, 0))
