"""Pairs of a row's candidates under noise that does not depend on the mean, with missing values.

They take the place of the pairs of :mod:`multicause.posteriors.expectations.masked_sums` if candidates differ between
rows.
"""

from __future__ import annotations

import jax.numpy as jnp

from multicause.arrays import Array
from multicause.generative import GenerativeModel
from multicause.posteriors.candidates.features import Features
from multicause.records import Parameters
from multicause.states.state_list import pairs_of


def products_of_candidates(model: GenerativeModel, parameters: Parameters, marked: Array, candidates: Array) -> Array:
    """Return Σ_d m_d W_id W_jd/Σ_d of all pairs of candidates (H', n) in each row: (pairs, n). Missing data are NaN."""
    components = model.noise.standardize(parameters.components, parameters.noise)
    pairs = list(zip(*pairs_of(len(candidates)), strict=True))

    def of_feature(mine: Array, values: Array, numbers: dict[str, Array]) -> Array:
        observed = jnp.where(jnp.isnan(values), 0, mine)
        # Products of rows one by one are faster than of rows that are gathered by an index.
        return jnp.stack([observed[i] * mine[j] for i, j in pairs]) if pairs else mine[:0]

    return Features(components, candidates, marked).sum(of_feature, len(pairs))


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
