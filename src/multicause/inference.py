"""Compiled functions of a learned model: inference of the causes of rows, and sampling."""

from functools import partial

import jax
import jax.numpy as jnp

from multicause.arrays import Array, compiled, jit_by_parts, starts_at_once, sum_in_double
from multicause.compatibility import Expectation
from multicause.engines.base import Data
from multicause.engines.blocks import zero_summary
from multicause.expectations import Inference, Recognized
from multicause.model import Model
from multicause.noises.base import Noise
from multicause.posteriors.expectations.shared_states import SharedStates
from multicause.records import Block, Parameters
from multicause.states import state_list as state_tree


def arrange(model: Model, data: Data, n_components: int, n_starts: int = 1) -> Data:
    """Return the data in blocks for which inference with a model fits into the memory budget.

    ``n_starts`` parameters are used at the same time.
    """
    at_once = starts_at_once(n_starts)
    size = (n_components, data.n_features, data.dtype.itemsize)
    per_row = model.posterior.bytes_per_row(*size, linear=model.linear)
    per_row += model.posterior.bytes_of_mask(*size) if model.missing else 0
    fixed = model.posterior.bytes_of_states(*size)
    own = type(model.noise).summarize is not Noise.summarize
    summary = partial(summarize, model.noise, model.missing) if own else zero_summary
    return data.arranged(summary, at_once * per_row, at_once * fixed)


def inertia(model: Model, data: Data, parameters: Parameters) -> float:
    """Return Σ_n w_n ‖y_n − g_v(y_n)‖², the sum of squared distances of rows from their most probable component."""
    return float(data.sum(partial(_inertia, model), parameters))


@compiled
def _inertia(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the inertia of a block, from differences: the expanded form could become negative by cancellation."""
    nearest = jnp.argmax(_infer(model, block, parameters).mean_causes, axis=1)
    apart = block.rows - parameters.components[nearest]
    apart = jnp.where(jnp.isnan(apart), 0, apart) if model.missing else apart
    return sum_in_double(block.weights * jnp.sum(apart**2, axis=1))


def _infer(model: Model, block: Block, parameters: Parameters) -> Inference:
    return model.posterior.infer(model, parameters, block, jnp.ones(()))


@partial(compiled, static=(0, 1))
def summarize(noise: Noise, missing: bool, rows: Array) -> Array:
    """Return the numbers that the noise needs for each row, with zeros in place of missing values: (n,).

    It does not take a model, so that all models with the same noise share its program.
    """
    return noise.summarize(jnp.where(jnp.isnan(rows), 0, rows) if missing else rows)


@jit_by_parts
def mean_causes(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the posterior mean ⟨s⟩ of the causes: (n, H)."""
    return _infer(model, block, parameters).mean_causes


@jit_by_parts
def active_causes(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the probability that each cause is active: (n, H)."""
    return _infer(model, block, parameters).mean_active


@jit_by_parts
def mean_data(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the posterior mean of the data given the causes, ⟨w̄(s)⟩ for most noises: (n, D)."""
    return model.noise.expected(_infer(model, block, parameters).mean_data(), parameters.noise)


@jit_by_parts
def imputed_data(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the posterior mean ⟨y⟩ given the observed values: (n, D)."""
    return model.noise.expected(_infer(model, block, parameters).imputed_data(), parameters.noise)


@jit_by_parts
def log_evidence(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return the log evidence log p(y) of each row, or its lower bound: (n,)."""
    return _infer(model, block, parameters).log_evidence


@jit_by_parts
def free_energy(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return F = ⟨log p(s, y)⟩ + H(q), which is log p(y) if q is the exact posterior: (n,)."""
    return _infer(model, block, parameters).free_energy


@partial(compiled, static=(0, 3))
def best_states(model: Model, block: Block, parameters: Parameters, top: int) -> Recognized:
    """Return the ``top`` most probable states of each row."""
    return _infer(model, block, parameters).recognize(top)


@jit_by_parts
def single_causes(model: Model, block: Block, parameters: Parameters) -> Array:
    """Return log p(s_h, y) of the states with one active cause, at its best level if it has several: (n, H)."""
    if Expectation.RESPONSIBILITIES in model.posterior.offers:
        return _infer(model, block, parameters).log_joint.T  # type: ignore[attr-defined]
    H, strengths = len(parameters.components), model.prior.strengths
    tree = state_tree.sparse_states(H, 1, strengths)
    scores = SharedStates(model, parameters, tree, block, jnp.ones(())).log_joint[1:]
    return (scores if len(strengths) == 1 else jnp.max(scores.reshape(H, len(strengths), -1), axis=1)).T


@jit_by_parts
def combine(model: Model, parameters: Parameters, causes: Array) -> Array:
    """Return the mean of the data for given causes: (n, D)."""
    return model.noise.expected(model.combination.mean(parameters.components, causes), parameters.noise)


@partial(compiled, static=(0, 3))
def sample(model: Model, parameters: Parameters, key: Array, n_samples: int) -> tuple[Array, Array]:
    """Draw causes from the prior, and data given the causes."""
    key_causes, key_noise = jax.random.split(key)
    causes = model.prior.sample(key_causes, parameters.prior, n_samples)
    means = model.combination.mean(parameters.components, causes)
    return model.noise.sample_given(key_noise, means, causes, parameters.noise), causes
