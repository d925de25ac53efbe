"""Sums of causes under noise that does not depend on the mean, with missing values: from pairs instead of means.

Over the observed dimensions of a row, ‖y − Σ_h s_h W_h‖² follows from scores of single causes and from products of
pairs of components, which differ from row to row: Σ_d m_d W_id W_jd is one matrix product with the mask. Sums over
states then need no means, and the M-step needs moments ⟨s_i s_j⟩ of each row. If components or the data's offset are
large, these differences would cancel, and means are used as for any other noise (:func:`is_far`).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.model import Model, Parameters
from multicause.posteriors.expectations.expansion import ROUNDING, standardized
from multicause.states.state_list import StateList, pairs_of


def is_far(model: Model, parameters: Parameters) -> Array:
    """Return whether cancellation of products of components would noticeably change scores: ()."""
    components, origin = standardized(model, parameters)
    largest = jnp.maximum(jnp.max(jnp.sum(components**2, axis=1)), jnp.sum(origin**2))
    return largest * jnp.finfo(parameters.components.dtype).eps > ROUNDING


def members_of(tree: StateList) -> np.ndarray:
    """Return which causes, and which pairs of them with a minus sign, are active in each state: (S, H + pairs)."""
    states, (first, second) = tree.states(), pairs_of(tree.n_components)
    return np.concatenate([states, -states[:, first] * states[:, second]], axis=1)


def scores(tree: StateList, singles: Array, empty: Array, products: Array) -> Array:
    """Return scores of all states (S, n), given those of single causes (H, n), the empty state (n,), and pairs."""
    of_parts = jnp.concatenate([singles - empty, products])
    return matmul(jnp.asarray(members_of(tree), of_parts.dtype), of_parts) + empty


def products_of_all(model: Model, parameters: Parameters, observed: Array) -> Array:
    """Return Σ_d m_d W_id W_jd/Σ_d of all pairs of causes in each row: (pairs, n)."""
    components = model.noise.standardize(parameters.components, parameters.noise)
    first, second = pairs_of(len(components))
    return matmul(components[first] * components[second], observed.T)


def slope_of_single(parameters: Parameters, origin: Array | None, data: Array, counts: Array) -> Array:
    """Return Σ_n w_n ⟨s_h⟩ (y − W_h)ᵀ over observed values, in double precision: (H, D).

    ``data`` are the products Σ_n w_n ⟨s⟩ (y − o)ᵀ with data relative to the origin o, and ``counts`` Σ_n w_n ⟨s⟩ mᵀ.
    """
    means = parameters.components.astype(jnp.float64)
    return data - counts.astype(jnp.float64) * (means if origin is None else means - origin)


def slope_from(
    parameters: Parameters, origin: Array | None, data: Array, observed: Array, causes: Array, pairs: Array
) -> Array:
    """Return Σ_n w_n ⟨s (y − w̄)ᵀ⟩ over observed values, in double precision: (H, D).

    ``causes`` (H, n) and ``pairs`` (pairs, n) are moments of each row times its weight; data are relative to an origin.
    """
    components = parameters.components.astype(jnp.float64)
    first, second = pairs_of(len(components))
    together = matmul(pairs, observed).astype(jnp.float64)
    explained = jnp.zeros_like(components).at[first].add(together * components[second])
    explained = explained.at[second].add(together * components[first])
    return slope_of_single(parameters, origin, matmul(causes, data), matmul(causes, observed)) - explained
