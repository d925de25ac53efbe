"""Weights of the states of a row's candidates and of single causes: ET10 algorithm 1, steps 4 to 6."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, add_by_index, indices_of_largest, matmul, relative, stored, sum_in_double
from multicause.generative import GenerativeModel
from multicause.posteriors.candidate_selection import Selection
from multicause.posteriors.candidates.candidate_pairs import products_of_candidates
from multicause.posteriors.candidates.candidate_scores import (
    Gram,
    absolute_products,
    gram_of,
    scores_of_means,
    scores_of_sums,
)
from multicause.posteriors.candidates.pieces import Pieces
from multicause.posteriors.expectations import masked_sums
from multicause.posteriors.expectations.observed import mask_of
from multicause.records import Block, Parameters
from multicause.states.state_list import StateList, pairs_of, sparse_states


class Weighed(NamedTuple):
    """Candidates of some rows, and the weights of the states considered.

    Weights u = p^β / max p^β are not divided by their sum z. Rows are along the fastest axis; weights of single causes,
    by far the most if there are many causes, stay in the pieces in which they were computed.
    """

    candidates: Array  # (H', n) index of the cause of each candidate
    empty: Array  # (n,) weight of the state without active causes
    singles: Array  # (pieces, H, m) weights of the states with one active cause
    own: Array  # (S', n) weights of the states with two and more active candidates
    moments: Array  # (H' + pairs, n) Σ_s u_n(s) s_i of candidates and, if needed, Σ_s u_n(s) s_i s_j, over own states
    z: Array  # (n,)
    log_z: Array  # (n,) log Σ p^β, without b(y)
    log_joint: Array  # (n,) ⟨log p(s, y)⟩, without b(y)
    score: Array  # (n,) ⟨Σ_d η(w̄_d)·y_d − A(w̄_d)⟩


class Sums(NamedTuple):
    """Weighted sums over rows; ``counts`` and ``data`` are those of ⟨s⟩ if causes add up, else of single causes."""

    causes: Array  # (H,) sum of ⟨s⟩, in double precision
    counts: Array  # (H, 1) sum of probabilities; (H, D) over observed values, if some are missing
    data: Array  # (H, D) sum of products of probabilities with data relative to the origin


def n_own_states(n_candidates: int, max_active: int, strengths: tuple[float, ...] = (1,)) -> int:
    """Return S', the number of states with two and more active candidates."""
    return sparse_states(n_candidates, max_active, strengths).n_states - 1 - n_candidates * len(strengths)


def weigh(
    model: GenerativeModel,
    parameters: Parameters,
    block: Block,
    temperature: Array,
    *,
    n_candidates: int,
    max_active: int,
    selection: Selection,
    singletons: bool,
    pieces: Pieces,
) -> tuple[Weighed, Sums]:
    """Select candidates and compute the weights of their states: ET10 algorithm 1, steps 4 to 6.

    The states of a row are K_n = {s : |s| ≤ γ, s_h = 0 for all h that are not candidates} (ET10 eq. 7), and with
    ``singletons`` also all states with one active cause (K̄_n, ET10 §4.2.1).

    The sums are weighted sums over all rows, accumulated piece by piece; results that a caller does not use, the
    weights of single causes or these sums, are eliminated by the compiler.
    """
    tree = sparse_states(n_candidates, max_active)
    gram = stored(gram_of(model, parameters, max_active)) if model.linear else None

    def of_piece(rows: Array, weights: Array) -> tuple[Sums, Weighed]:
        weighed = _weigh_rows(model, parameters, rows, temperature, tree, selection, singletons, gram)
        scale = weights / weighed.z
        data = relative(rows, model.noise.origin(parameters.noise))
        return sum_rows(model, data, scale, weighed.singles, weighed.candidates, weighed.moments), weighed

    sums, found = pieces.scan(of_piece, pieces.split_rows(block.rows), pieces.split(block.weights))
    return jax.tree.map(pieces.join, found._replace(singles=None))._replace(singles=found.singles), sums


def _weigh_rows(
    model: GenerativeModel,
    parameters: Parameters,
    rows: Array,
    temperature: Array,
    tree: StateList,
    selection: Selection,
    singletons: bool,
    gram: Gram | None,
) -> Weighed:
    """Return candidates and weights of rows that are processed at once; ``singles`` has no axis of pieces."""
    noise, components, n_candidates = model.noise, parameters.components, tree.n_components
    H = components.shape[0]
    first = 1 + n_candidates  # index of the first state with two active candidates

    origin, observed = noise.origin(parameters.noise), mask_of(model, rows)
    marked, means, nothing = (relative(each, origin) for each in (rows, components, jnp.zeros_like(components[:1])))
    data = marked if observed is None else jnp.where(observed > 0, marked, 0)

    def normalizers(means: Array) -> Array:
        """Return A(w̄) summed over all or over the observed dimensions: (S, 1) or (S, n)."""
        values = noise.log_normalizer(means, parameters.noise)
        return jnp.sum(values, axis=1)[:, None] if observed is None else matmul(values, observed.T)

    natural = noise.natural(means, parameters.noise)
    products = matmul(natural, data.T)
    scores = selection.scores(model, parameters, rows, absolute_products(model, parameters, natural, products, rows))
    candidates = indices_of_largest(scores, n_candidates)

    empty_score = matmul(noise.natural(nothing, parameters.noise), data.T)[0]
    empty_score -= normalizers(nothing)[0]
    if not selection.reliable:
        empty_score = jnp.where(jnp.any(jnp.isnan(scores), axis=0), jnp.nan, empty_score)
    single_score = products - normalizers(means)
    few_prior = model.prior.log_probability_of_singles(parameters.prior)
    empty_prior, single_prior = few_prior[0], few_prior[1:, None]
    empty, every_single = empty_score + empty_prior, single_score + single_prior
    singles = every_single
    if not singletons:
        chosen = jnp.any(candidates[:, None, :] == jnp.arange(H)[:, None], axis=0)
        singles = jnp.where(chosen, every_single, -jnp.inf)
    own_score = _scores_of_own(model, parameters, marked, data, single_score, empty_score, candidates, tree, gram)
    own_prior = model.prior.log_probability_among(candidates, tree.states()[first:], parameters.prior)
    own = own_score + own_prior

    beta = (1 / temperature).astype(rows.dtype)
    largest = jnp.maximum(jnp.max(singles, axis=0), jnp.max(own, axis=0, initial=-jnp.inf))
    largest = beta * jnp.maximum(largest, empty)
    u_empty, u_singles, u_own = (jnp.exp(beta * lot - largest) for lot in (empty, singles, own))
    z = u_empty + jnp.sum(u_singles, axis=0) + jnp.sum(u_own, axis=0)

    def expected(of_empty: Array, of_singles: Array, of_own: Array) -> Array:
        return (u_empty * of_empty + jnp.sum(u_singles * of_singles, axis=0) + jnp.sum(u_own * of_own, axis=0)) / z

    # Excluded states have weight zero and log joint −∞, whose product would be NaN; their finite values are used
    # instead.
    log_joint = expected(empty, every_single, own)
    score = expected(empty_score, single_score, own_score)
    moments = _moments(tree, u_own, pairs=model.sums_squares)
    return Weighed(candidates, u_empty, u_singles, u_own, moments, z, jnp.log(z) + largest, log_joint, score)


def _scores_of_own(
    model: GenerativeModel,
    parameters: Parameters,
    marked: Array,
    data: Array,
    single_score: Array,
    empty_score: Array,
    candidates: Array,
    tree: StateList,
    gram: Gram | None,
) -> Array:
    """Return η·y − A of the states with two and more active candidates (S', n), from means or from sums of causes.

    Missing values are NaN in ``marked`` rows and zero in ``data``.
    """

    def of_means() -> Array:
        return scores_of_means(model, parameters, marked, candidates, tree)

    def of_pairs() -> Array:
        of_candidates = jnp.take_along_axis(single_score, candidates, axis=0)
        pairs = products_of_candidates(model, parameters, marked, candidates)
        return masked_sums.scores(tree, of_candidates, empty_score, pairs)

    if model.missing and model.sums_squares:
        scores = jax.lax.cond(masked_sums.is_far(model, parameters), of_means, of_pairs)
    elif gram is None:
        scores = of_means()
    else:
        scores = scores_of_sums(model, parameters, data, single_score, empty_score, candidates, tree, gram)
    return scores[1 + tree.n_components :]


def _moments(tree: StateList, own: Array, *, pairs: bool) -> Array:
    """Return Σ_s u_n(s) s_i of each candidate, followed by Σ_s u_n(s) s_i s_j of each pair with ``pairs``."""
    members = tree.states()[1 + tree.n_components :].T
    first, second = pairs_of(tree.n_components)
    both = np.concatenate([members, members[first] * members[second]]) if pairs else members
    return matmul(jnp.asarray(both, dtype=own.dtype), own)


def sum_rows(
    model: GenerativeModel, data: Array, scale: Array, singles: Array, candidates: Array, moments: Array
) -> Sums:
    """Return sums over rows, scaled by ``scale``, given single causes (H, m) and moments. Missing data are NaN."""
    causes = add_by_index(singles, candidates, moments[: len(candidates)]) * scale
    probabilities = causes if model.sums_squares else singles * scale
    counts = counts_of(probabilities, mask_of(model, data))
    data = jnp.where(jnp.isnan(data), 0, data) if model.missing else data
    return Sums(sum_in_double(causes, axis=1), counts, matmul(probabilities, data))


def counts_of(probabilities: Array, observed: Array | None) -> Array:
    """Return sums of probabilities (H, m) over rows, (H, 1), or over the rows in which a value was observed, (H, D)."""
    return jnp.sum(probabilities, axis=1)[:, None] if observed is None else matmul(probabilities, observed)
