"""The posterior of patches under learned components, with probabilities of causes that may differ between patches."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, compiled, double_precision, matmul, namespace
from multicause.posteriors.beams.beam_search import Strengths, numbers_of_states, search_states
from multicause.runtime.parallel import number_of_jobs, run_all

# Rows of one program: on a CPU their arrays stay in its cache, on an accelerator they keep it busy.
ROWS_ON_CPU, ROWS_ON_ACCELERATOR = 512, 4096


class LearnedComponents(NamedTuple):
    """Parameters of spike-and-slab causes that were learned from patches, in single precision."""

    components: np.ndarray  # (H, D) of length one
    activity: np.ndarray  # (H,) π, how often causes are active
    variance: np.ndarray  # (H,) ψ, of the strengths of active causes
    noise_variance: float  # σ²


class Restored(NamedTuple):
    """Posterior of patches (n, D), which are the sums of their active causes without the noise."""

    mean: np.ndarray  # (n, D)
    variance: np.ndarray  # (n,) mean over the dimensions of a patch
    active: Array | np.ndarray  # (n, H) probabilities that causes are active; on the device that computed them


def infer(
    rows: np.ndarray,
    learned: LearnedComponents,
    max_active: int,
    width: int,
    activity: Array | np.ndarray | None = None,
    precision: np.ndarray | None = None,
) -> Restored:
    """Return the posterior of rows (n, D).

    ``activity`` (n, H), the prior probabilities of causes in each row, takes the place of the learned ones. Values have
    noise of variance σ² / ``precision`` (n, D): it is one for observed values, and less for those that are uncertain.
    """
    on_cpu = jax.default_backend() == "cpu"
    n, size = len(rows), ROWS_ON_CPU if on_cpu else ROWS_ON_ACCELERATOR
    kept = tuple(numbers_of_states(len(learned.components), max_active, width))
    shared = tuple(jnp.asarray(values, jnp.float32) for values in learned)
    # The same for all rows, so that one program serves both cases.
    prior = np.broadcast_to(learned.activity, (n, len(learned.activity))) if activity is None else activity

    def block(begin: int) -> Any:
        weights = None if precision is None else _filled(precision, begin, size)
        blocks = _filled(rows, begin, size), _filled(prior, begin, size), weights
        return jax.block_until_ready(_infer(kept, *blocks, *shared))

    # Arrays of a CPU need not be copied to become arrays of NumPy; those of an accelerator stay there.
    concatenate = np.concatenate if on_cpu else jnp.concatenate
    with double_precision():
        blocks = run_all(block, [(begin,) for begin in range(0, n, size)], number_of_jobs(None) if on_cpu else 1)
        mean, variance, active = (concatenate(values)[:n] for values in zip(*blocks, strict=True))
    return Restored(np.asarray(mean), np.asarray(variance), active)


def _filled(values: Array | np.ndarray, begin: int, n_rows: int) -> Any:
    """Return ``n_rows`` rows from ``begin`` on in single precision; the last one is repeated beyond the end.

    All blocks have the same number of rows, so that one program serves them.
    """
    places = np.minimum(np.arange(begin, begin + n_rows), len(values) - 1)
    return namespace(values).take(values, places, axis=0).astype(np.float32)


def _posterior(
    kept: tuple[int, ...],
    rows: Array,
    activity: Array,
    precision: Array | None,
    components: Array,
    _: Array,
    variance: Array,
    noise_variance: Array,
) -> tuple[Array, Array, Array]:
    scale = 1 / jnp.sqrt(noise_variance)
    # Sums over observed values are weighted ones, which serve precisions between zero and one as well.
    data = rows if precision is None else precision * rows
    log_odds = (jnp.log(activity) - jnp.log1p(-activity))[:, None]
    strengths = Strengths(log_odds, jnp.zeros_like(variance), variance)
    found = search_states(components * scale, data * scale, strengths, kept, precision)
    scores = jnp.concatenate([jnp.zeros((len(rows), 1), rows.dtype), *(states.score for states in found)], axis=1)
    probabilities = jax.nn.softmax(scores, axis=1)[:, 1:]
    gram = matmul(components, components.T)
    n, H = len(rows), len(components)
    causes, active = jnp.zeros((n, H), rows.dtype), jnp.zeros((n, H), rows.dtype)
    square, begin = jnp.zeros(n, rows.dtype), 0
    row_numbers = jnp.arange(n)[:, None, None]
    for states in found:
        weights = probabilities[:, begin : begin + states.score.shape[1]]
        begin += states.score.shape[1]
        causes = causes.at[row_numbers, states.active].add(weights[..., None] * states.mean)
        active = active.at[row_numbers, states.active].add(jnp.broadcast_to(weights[..., None], states.active.shape))
        moments = states.mean[..., :, None] * states.mean[..., None, :] + states.covariance
        overlaps = gram[states.active[..., :, None], states.active[..., None, :]]
        square += jnp.sum(weights * jnp.sum(moments * overlaps, axis=(-2, -1)), axis=1)
    mean = matmul(causes, components)
    spread = jnp.maximum(square - jnp.sum(mean**2, axis=1), 0) / rows.shape[1]
    return mean, spread, active


_infer = compiled(_posterior, static=(0,))
