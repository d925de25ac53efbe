"""Pairs of a row's candidates under noise that does not depend on the mean, with missing values.

They take the place of the pairs of :mod:`multicause.posteriors.expectations.masked_sums` if candidates differ between
rows.
"""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array, one_by_one
from multicause.generative import GenerativeModel
from multicause.posteriors.candidates.features import Features
from multicause.records import Parameters
from multicause.states.state_list import pairs_of


def products_of_candidates(model: GenerativeModel, parameters: Parameters, marked: Array, candidates: Array) -> Array:
    """Return Σ_d m_d W_id W_jd/Σ_d of all pairs of candidates (H', n) in each row: (pairs, n). Missing data are NaN."""
    components = model.noise.standardize(parameters.components, parameters.noise)
    (first, second), n_candidates = pairs_of(len(candidates)), len(candidates)
    features = Features(components, candidates, marked)

    def of_pairs(mine: Array, values: Array, numbers: dict[str, Array]) -> Array:
        return jnp.where(jnp.isnan(values), 0, mine[first] * mine[second])

    def of_all(mine: Array, values: Array, numbers: dict[str, Array]) -> Array:
        observed = jnp.where(jnp.isnan(values), 0, mine)
        return (observed[:, None] * mine).reshape(n_candidates**2, -1)

    if one_by_one():
        # Twice as many products, but in the order of memory (10 candidates, 200 features: 5.5 instead of 14 ms).
        return features.sum(of_all, n_candidates**2)[first * n_candidates + second]
    return features.sum(of_pairs, len(first))


def explained_by_others(features: Features, pairs: Array) -> Array:
    """Return Σ_n w_n Σ_{j ≠ h} ⟨s_h s_j⟩ m W_j, given moments of pairs of candidates (pairs, n): (H, D).

    It takes one product for each pair, row and feature, where means of all states would take several for each state.
    """
    first, second = pairs_of(len(features.candidates))

    def others(mine: Array, values: Array, numbers: dict[str, Array], pairs: Array) -> list[Array]:
        found = [jnp.zeros_like(values)] * len(mine)
        for moments, i, j in zip(pairs, first, second, strict=True):
            found[i], found[j] = found[i] + moments * mine[j], found[j] + moments * mine[i]
        return [jnp.where(jnp.isnan(values), 0, jnp.stack(found))]

    return features.sum_by_cause(others, pairs)[0].astype(jnp.float64)
