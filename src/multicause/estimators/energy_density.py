"""Fitted energy-based models: their attributes, and activities, energies and samples of rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from multicause.arrays import bytes_from, compiled, double_precision, key_from
from multicause.energies import Energy, EnergyParameters
from multicause.engines import Data
from multicause.engines.blocks import zero_summary
from multicause.estimators.arguments import check_count
from multicause.persistence.row_writing import collect_or_write
from multicause.preparation.whitening import whiten
from multicause.records import Block
from multicause.samplers import annealed
from multicause.samplers.annealed import ARRAYS, LogPartition
from multicause.solvers.contrastive_divergence import UpdateState
from multicause.solvers.energy_problem import EnergyProblem

# Default number of chains and of intermediate densities by which log Z is estimated.
CHAINS, TEMPERATURES = 500, 1000
# Number of intermediate densities, and of further steps at the model's density, when samples are drawn.
SAMPLING_PATH, SAMPLING_STEPS = 200, 200


def fitted_attributes(problem: EnergyProblem, updates: UpdateState) -> dict[str, Any]:
    """Return the attributes of a model with these learned parameters.

    Arrays are NumPy's: JAX arrays would lose their double precision in a pickle.
    """
    updates = jax.device_get(updates)
    method, whitening, parameters = problem.method, problem.whitening, updates.parameters
    filters = np.asarray(parameters.filters)
    dtype, precise = filters.dtype, filters.astype(float)
    exponents = parameters.shapes[0].get("exponents")
    return {
        "_problem": EnergyProblem(method, updates, whitening),
        "components_": (precise @ whitening.matrix).astype(dtype),
        "whitened_components_": filters.copy(),
        "mixing_": (whitening.inverse @ np.linalg.pinv(precise)).astype(dtype),
        "mean_": whitening.mean.astype(dtype),
        "exponents_": None if exponents is None else np.array(exponents),
        "expert_": clone(method.energy.expert),
        "sampler_": clone(method.sampler),
        "optimizer_": clone(method.optimizer),
        "step_size_": float(updates.step_size),
        "n_iter_": int(updates.n_updates),
        "n_rejected_": int(updates.n_rejected),
        "log_partition_": known_log_partition(method.energy, parameters),
    }


def known_log_partition(energy: Energy, parameters: EnergyParameters) -> LogPartition | None:
    """Return log Z where it is known, in double precision, whatever the data: it is a constant of all densities."""
    if not energy.has_density(parameters):
        return None
    with double_precision():
        in_double = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float), parameters)
        return LogPartition(float(_log_partition(energy, in_double)), 0.0, 0, 0)


def n_activities(problem: EnergyProblem) -> int:
    """Return the number of activities of all layers."""
    parameters = problem.updates.parameters
    return sum(len(shape) for shape in (parameters.filters, *(layer.bias for layer in parameters.layers)))


def rows_of_activities(S: ArrayLike, mixing: np.ndarray, mean: np.ndarray, width: int) -> np.ndarray:
    """Return rows (n, D) from activities ``S`` of the first layer or of all layers, (n, H) or (n, width).

    ``mixing`` (D, H) is the contribution of each activity of the first layer to the data, and ``mean`` (D,) their mean.
    """
    activities, n_first = np.asarray(S, dtype=mixing.dtype), mixing.shape[1]
    if activities.ndim != 2 or activities.shape[1] not in (n_first, width):
        raise ValueError(f"Activities must have shape (n_samples, {width}); got {activities.shape}.")
    if not np.isfinite(activities).all():
        raise ValueError("Activities must be finite; they hold NaN or infinity.")
    return (activities[:, :n_first] @ mixing.T + mean).astype(activities.dtype)


def by_rows(function: Any, problem: EnergyProblem, data: Data) -> tuple[Data, Any]:
    """Return the data in blocks, and a compiled function of a block with the parameters of a model."""
    energy, parameters = problem.method.energy, problem.updates.parameters
    dtype = np.asarray(parameters.filters).dtype
    width = n_activities(problem)
    whitening = problem.whitening.cast(dtype)
    # Temporary arrays have the width of all units, in double precision.
    data = data if data.dtype == dtype else data.transformed(partial(np.asarray, dtype=dtype))
    data = data.arranged(zero_summary, 8 * (width + ARRAYS * data.n_features))

    def of_block(block: Block) -> Any:
        return function(energy, block, parameters, whitening)

    return data, of_block


def results(function: Any, problem: EnergyProblem, data: Data, out: Any = None) -> Any:
    """Return the results of a compiled function for all rows, or write them to ``out``."""
    with double_precision():
        arranged, of_block = by_rows(function, problem, data)
        return collect_or_write(arranged, of_block, out)


def mean_energy(problem: EnergyProblem, data: Data) -> float:
    """Return the weighted mean energy of all rows."""
    arranged, of_block = by_rows(energies_of, problem, data)
    weights = np.concatenate(arranged.each(lambda rows, weights: np.asarray(weights)))
    return float(np.average(np.asarray(arranged.collect(arranged.map(of_block)), dtype=float), weights=weights))


def why_improper(problem: EnergyProblem) -> str:
    """Return why a model has no density, with remedies, or an empty string if it has one."""
    reason = problem.method.energy.why_no_integral(problem.updates.parameters)
    if not reason:
        return ""
    return (
        f"exp(−E) of this model has no finite integral, because {reason}. There is no partition function and "
        "nothing to sample from. (1) Use fewer components; (2) use another init if filters are parallel; (3) keep "
        "tails lighter, with expert=Student(exponent=1.0, learn_exponents=False) or expert='logistic'."
    )


def estimate_log_partition(
    problem: EnergyProblem, n_chains: int, n_temperatures: int, memory_budget: str | int, random: Any
) -> LogPartition:
    """Estimate log Z by annealed importance sampling, or return it if it is known.

    Raises ValueError if there is no finite one.
    """
    check_count("n_chains", n_chains, least=2)
    check_count("n_temperatures", n_temperatures)
    known = known_log_partition(problem.method.energy, problem.updates.parameters)
    if known is not None:
        return known
    if reason := why_improper(problem):
        raise ValueError(reason)
    chains, base = _anneal(problem, int(n_chains), int(n_temperatures), 0, memory_budget, random)
    if not np.isfinite(chains.log_weights).all():
        raise ValueError(
            "Annealed importance sampling met energies that are not finite, so there is no estimate. Check that the "
            "expert is finite everywhere."
        )
    return annealed.log_partition(chains, base)


def draws_exactly(problem: EnergyProblem) -> bool:
    """Return whether samples are independent draws, because Z is known."""
    energy = problem.method.energy
    return energy.has_density(problem.updates.parameters) and energy.expert.offers("draw")


def draw_rows(problem: EnergyProblem, n_samples: int, memory_budget: str | int, random: Any) -> np.ndarray:
    """Draw rows (n_samples, n_features): independently where Z is known, else as ends of separate chains."""
    parameters, whitening = problem.updates.parameters, problem.whitening
    if draws_exactly(problem):
        with double_precision():
            Z = _draw(problem.method.energy, parameters, key_from(random), n_samples)
    else:
        Z = _anneal(problem, n_samples, SAMPLING_PATH, SAMPLING_STEPS, memory_budget, random)[0].positions
    return (np.asarray(Z) @ whitening.inverse.T + whitening.mean).astype(np.asarray(parameters.filters).dtype)


def _anneal(
    problem: EnergyProblem, n_chains: int, n_temperatures: int, n_more: int, memory_budget: str | int, random: Any
) -> tuple[annealed.Annealed, annealed.BaseDensity]:
    """Run chains from a known density to the model, within the memory budget; return them and that density."""
    energy, parameters = problem.method.energy, problem.updates.parameters
    base = annealed.base_for(energy, parameters, problem.whitening.variance)
    with double_precision():
        chains = annealed.follow_path(
            energy,
            parameters,
            base,
            n_chains,
            n_temperatures,
            n_more=n_more,
            key=key_from(random),
            memory=bytes_from(memory_budget),
        )
    return chains, base


@compiled
def activities_of(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    """Compute the activities of all layers of the rows of a block: (n, units)."""
    return jnp.concatenate(energy.activities(parameters, whiten(block.rows, *whitening)), axis=1)


@compiled
def energies_of(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    """Compute the energies of the rows of a block: (n,)."""
    return energy.value(parameters, whiten(block.rows, *whitening))


@partial(compiled, static=(0, 3))
def _draw(energy: Energy, parameters: EnergyParameters, key: jax.Array, n_samples: int) -> jax.Array:
    return energy.draw(key, parameters, n_samples)


@compiled
def _log_partition(energy: Energy, parameters: EnergyParameters) -> jax.Array:
    return energy.log_partition(parameters)
