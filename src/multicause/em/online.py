"""Online EM, with running averages of the statistics in place of sums over all data.

After batch t the averages are S ← (1 − η_t) S + η_t s_t with η_t = (t + 2)^{−0.6}, a rate that forgets statistics of
poor early parameters but still averages over ever more data (Cappé & Moulines 2009). A data cut is made within each
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from multicause.arrays import on_host
from multicause.em.data_cut import final_share
from multicause.em.e_step import expect_blocks, expect_one
from multicause.em.loop import check_rows
from multicause.em.m_step import maximize_one
from multicause.em.results import one_start, start_of
from multicause.engines.base import Data
from multicause.model import Model, Statistics
from multicause.records import Block, Parameters

FORGETTING = 0.6


class Online(NamedTuple):
    """State of online EM: averages per unit of weight, on the host, and the number of batches seen."""

    averages: Statistics
    n_batches: int


def continued(statistics: Statistics, n_iter: int) -> Online:
    """Return the state after a fit, which counts as many batches as it had iterations."""
    return Online(on_host(statistics.scaled(1 / statistics.weight)), n_iter)


def step(model: Model, data: Data, parameters: Parameters, before: Online | None) -> tuple[Online, Parameters, float]:
    """Learn from one batch; return the new state, the new parameters and the batch's mean bound before the step."""
    start, share = one_start(parameters), np.ones(1)
    if before is not None and model.posterior.keep is not None:
        # The first batch is learned without a cut, because there are no learned components yet to evaluate rows with.
        share = np.asarray(final_share(model, start))
        check_rows(model, share, data)
    sums = expect_blocks(model, data, start, np.ones(1), share, np.ones(1, dtype=bool))
    sums = start_of(on_host(sums))
    new = sums.scaled(1 / sums.weight)
    n_batches = 1 if before is None else before.n_batches + 1
    if before is not None:
        rate = (n_batches + 1) ** -FORGETTING
        averages = with_counts(before.averages, new, parameters) if model.missing else before.averages
        new = averages.scaled(1 - rate) + new.scaled(rate)
    after = _maximize(model, new, parameters, model.posterior.max_active if share[0] < 1 else None)
    return Online(on_host(new), n_batches), after, float(sums.bound / sums.seen)


def with_counts(averages: Statistics, like: Statistics, parameters: Parameters) -> Statistics:
    """Return averages over complete rows in the form of those over rows with missing values.

    The latter count for each dimension how often it was observed, where the former have one weight for all dimensions.
    """

    def converted(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        record = {}
        for name, value in new.items():
            if name in old:
                average = np.asarray(old[name])
                new_axes = (1,) * (value.ndim - average.ndim)
                record[name] = np.broadcast_to(average.reshape(average.shape + new_axes), value.shape)
            elif name == "credit":
                # For components with a constant sum, credit follows from the sums of the credited data.
                sums = np.sum(old["credited_data"], axis=1) / np.sum(parameters.components, axis=1)
                record[name] = np.broadcast_to(sums[:, None], value.shape)
            else:
                # The number of observed values, of each dimension or of all together.
                record[name] = np.full(value.shape, averages.weight * (n_features if value.ndim == 0 else 1))
        return record

    n_features = max(leaf.shape[-1] for leaf in jax.tree.leaves(like.components))
    components, noise = converted(averages.components, like.components), converted(averages.noise, like.noise)
    return replace(averages, components=components, noise=noise)


def saved(online: Online | None) -> dict[str, Any] | None:
    """Return the record of a state from which :func:`restored` can restore it."""
    return online and {"averages": jax.tree.leaves(online.averages), "n_batches": online.n_batches}


def restored(
    model: Model, parameters: Parameters, averages: Sequence[np.ndarray] | None, n_batches: int
) -> Online | None:
    """Return the state of a saved model, whose averages are the leaves of a record of known shapes.

    The shapes follow from the model, and only if parts and parameters are compatible; otherwise an error is raised.
    """
    D = parameters.components.shape[1]
    one: Any = jax.ShapeDtypeStruct
    dtype = parameters.components.dtype
    row = Block(one((1, D), dtype), one((1,), dtype), one((1,), dtype))
    # Arrays of a file are NumPy's; as arguments they are traced, as in every other call of the E-step.
    shape = jax.eval_shape(partial(expect_one, model), row, parameters, np.ones(()))
    if averages is None:
        return None
    if [np.shape(leaf) for leaf in averages] != [leaf.shape for leaf in jax.tree.leaves(shape)]:
        raise ValueError("its statistics do not have the shapes that its parts need")
    return Online(jax.tree.unflatten(jax.tree.structure(shape), averages), n_batches)


_maximize = jax.jit(maximize_one, static_argnums=(0, 3))
