"""Sums of causes under noise that does not depend on the mean, with missing values: from pairs instead of means.

Over the observed dimensions of a row, ‖y − Σ_h s_h W_h‖² follows from scores of single causes and from products of
pairs of components, which differ from row to row: Σ_d m_d W_id W_jd is one matrix product with the mask. Sums over
states then need no means, and the M-step needs moments ⟨s_i s_j⟩ of each row. If components or the data's offset are
large, these differences would cancel, and means are used as for any other noise (:func:`is_far`).

Where all states are considered, they are pairs of a state of the first and a state of the second half of the causes, so
that scores and moments follow from those of the halves and from pairs of causes between them.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.generative import GenerativeModel
from multicause.posteriors.expectations.expansion import ROUNDING, standardized
from multicause.records import Parameters
from multicause.states.state_list import StateList, all_states, pairs_of


def is_far(model: GenerativeModel, parameters: Parameters) -> Array:
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
    relative_scores = _scores_of_halves if is_product(tree) else _scores_of_list
    return relative_scores(tree, singles - empty, products) + empty


def moments(tree: StateList, weights: Array) -> tuple[Array, Array]:
    """Return Σ_s q(s) s_i (H, n) and Σ_s q(s) s_i s_j of all pairs (pairs, n), given the weights q of states (S, n)."""
    return (_moments_of_halves if is_product(tree) else _moments_of_list)(tree, weights)


def n_products(tree: StateList) -> int:
    """Return the number of products that :func:`scores` computes for each state."""
    H = tree.n_components
    return 1 + (H + 1) // 2 if is_product(tree) else H * (H + 1) // 2


def is_product(tree: StateList) -> bool:
    """Return whether states are all combinations of states of the first and of the second half of the causes."""
    return tree.max_active == tree.n_components > 1 and not tree.sparsest_first


def _scores_of_list(tree: StateList, singles: Array, products: Array) -> Array:
    return matmul(jnp.asarray(members_of(tree), singles.dtype), jnp.concatenate([singles, products]))


def _moments_of_list(tree: StateList, weights: Array) -> tuple[Array, Array]:
    totals = matmul(jnp.asarray(np.abs(members_of(tree)), weights.dtype).T, weights)
    return totals[: tree.n_components], totals[tree.n_components :]


class _Halves(NamedTuple):
    """States of the two halves of the causes, and where their pairs are among those of all causes."""

    first: StateList  # of causes 0 to k − 1, the lower digits of a state's number
    second: StateList
    of_first: np.ndarray  # pairs within the first half
    of_second: np.ndarray
    between: np.ndarray  # (H − k, k) pairs of a cause of the second and a cause of the first half


@cache
def _halves(tree: StateList) -> _Halves:
    H, k = tree.n_components, tree.n_components // 2
    first, second = pairs_of(H)
    places = np.zeros((H, H), dtype=int)
    places[first, second] = places[second, first] = np.arange(len(first))
    within = np.flatnonzero(second < k), np.flatnonzero(first >= k)
    return _Halves(all_states(k), all_states(H - k), *within, places[k:, :k])


def _scores_of_halves(tree: StateList, singles: Array, products: Array) -> Array:
    """Return scores relative to that of the empty state: those of both halves, less products of pairs between them.

    There are few states of a half, so that the work for each state of all causes does not grow with their pairs.
    """
    halves, (H, n) = _halves(tree), singles.shape
    k = halves.first.n_components
    of_first = _scores_of_list(halves.first, singles[:k], products[halves.of_first])
    of_second = _scores_of_list(halves.second, singles[k:], products[halves.of_second])
    # Σ_j s_j P_ij over the causes j of the first half, for each cause i of the second: (H − k, states of the first, n).
    pulls = matmul(jnp.asarray(halves.first.states(), singles.dtype), products[halves.between])
    states = np.concatenate([np.ones((halves.second.n_states, 1)), -halves.second.states()], axis=1)
    parts = jnp.concatenate([of_first[None], pulls]).reshape(H - k + 1, -1)
    together = matmul(jnp.asarray(states, singles.dtype), parts).reshape(len(states), -1, n)
    return (together + of_second[:, None]).reshape(-1, n)


def _moments_of_halves(tree: StateList, weights: Array) -> tuple[Array, Array]:
    halves, n = _halves(tree), weights.shape[1]
    k, H = halves.first.n_components, tree.n_components
    both = weights.reshape(halves.second.n_states, -1, n)
    states = np.concatenate([np.ones((halves.second.n_states, 1)), halves.second.states()], axis=1)
    # Weights of states of the first half, of all rows and of those with each cause of the second half.
    sums = matmul(jnp.asarray(states.T, weights.dtype), both.reshape(len(states), -1)).reshape(H - k + 1, -1, n)
    of_first, within_first = _moments_of_list(halves.first, sums[0])
    of_second, within_second = _moments_of_list(halves.second, jnp.sum(both, axis=1))
    between = matmul(jnp.asarray(halves.first.states().T, weights.dtype), sums[1:])
    pairs = jnp.zeros((H * (H - 1) // 2, n), weights.dtype)
    pairs = pairs.at[halves.of_first].set(within_first).at[halves.of_second].set(within_second)
    return jnp.concatenate([of_first, of_second]), pairs.at[halves.between].set(between)


def products_of_all(model: GenerativeModel, parameters: Parameters, observed: Array) -> Array:
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
