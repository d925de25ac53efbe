"""The problem that a fit of an energy-based model solves: its parts, its whitening and its initial parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from multicause import energies, samplers
from multicause.arrays import bytes_from
from multicause.energies import Energy, EnergyParameters, Expert, FunctionExpert, check_expert
from multicause.engines.base import Data
from multicause.initialization.filters import initial_filters
from multicause.parts import resolve
from multicause.preparation.whitening import WhiteningMap, find_whitening
from multicause.samplers import Sampler
from multicause.samplers.annealed import ARRAYS
from multicause.samplers.base import is_count
from multicause.solvers import optimizers
from multicause.solvers.contrastive_divergence import Method, Rates, UpdateState, begin, key_data
from multicause.solvers.optimizers import FINAL_RATE_RATIO, Momentum, Optimizer


class EnergyProblem(NamedTuple):
    """Method, initial state and whitening of one fit."""

    method: Method
    updates: UpdateState
    whitening: WhiteningMap


class FormerUpdateState(NamedTuple):
    """State of learning in files of version 0.1, which knew momentum only."""

    parameters: Any
    velocity: Any
    step_size: Any
    chains: Any
    n_updates: Any
    n_rejected: Any
    finite: Any


def energy_problem(
    settings: dict[str, Any], data: Data, n_chains: int, memory_budget: str | int, random: np.random.RandomState
) -> EnergyProblem:
    """Make the problem of a fit from the settings of ``EnergyComponents``; mini-batches have ``n_chains`` rows."""
    method, sizes = method_of(settings), layer_sizes(settings["layers"])
    whitening = find_whitening(data, settings["whiten"], settings["n_whitened"])
    dimensions = len(whitening.matrix)
    units = dimensions if settings["n_components"] is None else settings["n_components"]
    _check_memory(memory_budget, n_chains, units + sum(sizes) + data.n_features, data.dtype.itemsize)
    filters = initial_filters(settings["init"], units, whitening.inverse, whitening.variance, random)
    background = np.asarray(1 / whitening.variance, data.dtype)
    n_kept = n_chains if method.persistent else 0
    updates = begin(method, sizes, n_kept, filters.astype(data.dtype), background, key_data(random))
    _check_closed_form(method, updates.parameters)
    return EnergyProblem(method, updates, whitening)


def method_of(settings: dict[str, Any]) -> Method:
    """Return the parts that settings name, checked."""
    expert: Any = settings["expert"]
    if callable(expert) and not isinstance(expert, Expert | str | type):
        expert = FunctionExpert(expert)
    expert = resolve(expert, energies.NAMES, "expert", Expert)
    if type(expert) not in energies.NAMES.values():
        check_expert(expert)
    optimizer: Any = settings["optimizer"]
    optimizer = Momentum(settings["momentum"]) if optimizer == "momentum" else optimizer
    return Method(
        Energy(expert, settings["nonlinearity"]),
        resolve(settings["sampler"], samplers.NAMES, "sampler", Sampler),
        int(settings["n_steps"]),
        bool(settings["persistent"]),
        resolve(optimizer, optimizers.NAMES, "optimizer", Optimizer),
        settings["schedule"],
    )


def rates_of(settings: dict[str, Any]) -> Rates:
    """Return the learning rates and the weight decay that settings name."""
    first, last = settings["learning_rate"], settings["final_learning_rate"]
    last = first * FINAL_RATE_RATIO if last is None else last
    return Rates(*(np.asarray(value, float) for value in (first, last, settings["max_iter"], settings["weight_decay"])))


def layer_sizes(layers: Any) -> tuple[int, ...]:
    """Return the validated sizes of the further layers."""
    if not all(is_count(size) for size in layers):
        raise ValueError(
            f"layers must be a tuple with the number of units of each further layer; got {layers!r}. One layer of 20 "
            "units is written (20,)."
        )
    return tuple(int(size) for size in layers)


def restored(state: dict[str, Any], n_features: int) -> EnergyProblem:
    """Return the problem with the learned parameters that a file holds; raise an error if they do not fit together."""
    kinds = {
        "expert": Expert,
        "sampler": Sampler,
        "optimizer": Optimizer,
        "updates": UpdateState,
        "whitening": WhiteningMap,
    }
    if "course" in state:  # the name in files of version 0.1
        state["updates"] = state.pop("course")
    updates, whitening = state["updates"], state["whitening"]
    if isinstance(updates, FormerUpdateState):
        parameters, velocity, *others = updates
        state["updates"] = updates = UpdateState(parameters, tuple(jax.tree.leaves(velocity)), *others)
    for name, kind in kinds.items():
        if not isinstance(state[name], kind):
            raise TypeError(f"{name} must be a {kind.__name__}; got {type(state[name]).__name__}")
    method = Method(
        Energy(state["expert"], state["nonlinearity"]),
        state["sampler"],
        state["n_steps"],
        state["persistent"],
        state["optimizer"],
        state["schedule"],
    )
    if whitening.matrix.shape[1] != n_features:
        raise ValueError(f"rows of {n_features} features do not fit its whitening")
    rows = jax.ShapeDtypeStruct((1, len(whitening.matrix)), np.asarray(updates.parameters.filters).dtype)
    jax.eval_shape(method.energy.value, updates.parameters, rows)  # shapes that do not match raise an error
    return EnergyProblem(method, updates, whitening)


def saved(problem: EnergyProblem) -> dict[str, Any]:
    """Return the state of a problem as a record from which :func:`restored` can restore it."""
    method = problem.method
    return {
        "expert": method.energy.expert,
        "nonlinearity": method.energy.nonlinearity,
        "sampler": method.sampler,
        "n_steps": method.n_steps,
        "persistent": method.persistent,
        "optimizer": method.optimizer,
        "schedule": method.schedule,
        "updates": jax.device_get(problem.updates),
        "whitening": problem.whitening,
    }


def _check_memory(memory_budget: str | int, n_rows: int, width: int, itemsize: int) -> None:
    """Raise an error if a mini-batch, which is processed as a whole, exceeds the memory budget."""
    needed = n_rows * itemsize * ARRAYS * width
    if needed > bytes_from(memory_budget):
        raise ValueError(
            f"A mini-batch of {n_rows} rows needs about {needed:,} bytes of temporary memory, more than the budget "
            f"of {memory_budget!r}. Lower batch_size, raise it with engine=Local(memory_budget=...), or use float32."
        )


def _check_closed_form(method: Method, parameters: EnergyParameters) -> None:
    """Raise ValueError if a sampler needs the partition function and it is unknown."""
    energy, sampler = method.energy, method.sampler
    if not sampler.needs_of_expert:
        return
    reason = energy.why_no_density(parameters)
    absent = [name for name in sampler.needs_of_expert if not energy.expert.offers(name)]
    if not reason and absent:
        reason = f"the expert {type(energy.expert).__name__} has no method {absent[0]}"
    if reason:
        names = {kind: name for name, kind in samplers.NAMES.items()}
        raise ValueError(
            f"sampler={names.get(type(sampler), type(sampler).__name__)!r} needs a known partition function: one "
            f"layer, at most as many components as dimensions, and an expert that offers "
            f"{' and '.join(sampler.needs_of_expert)}; but {reason}. Use a Markov chain, such as "
            "sampler='hamiltonian'."
        )
