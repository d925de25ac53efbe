"""Inference over states of a few candidates, selected for each row, and over states with a single cause."""

from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, add_by_index, indices_of_largest, matmul, stored, sum_in_double
from multicause.model import Block, Model, Parameters
from multicause.posteriors import masked_sums
from multicause.posteriors.base import Function, Inference, Recognized, Term
from multicause.posteriors.candidate_scores import (
    Gram,
    absolute_products,
    gram_of,
    pairs_of,
    scores_of_means,
    scores_of_sums,
)
from multicause.posteriors.expansion import absolute, relative
from multicause.posteriors.features import Features
from multicause.posteriors.observed import cause_data_of, log_base, mask_of, minus_mean, observed_data, one
from multicause.posteriors.pieces import Pieces
from multicause.posteriors.selection import Selection
from multicause.states.state_list import StateList, sparse_states


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
    model: Model,
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
        found = _weigh_rows(model, parameters, rows, temperature, tree, selection, singletons, gram)
        scale = weights / found.z
        data = relative(rows, model.noise.origin(parameters.noise))
        return _sum_rows(model, data, scale, found.singles, found.candidates, found.moments), found

    sums, found = pieces.scan(of_piece, pieces.split_rows(block.rows), pieces.split(block.weights))
    return jax.tree.map(pieces.join, found._replace(singles=None))._replace(singles=found.singles), sums


def _weigh_rows(
    model: Model,
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
    if model.missing and model.sums_squares:

        def of_pairs() -> Array:
            of_candidates = jnp.take_along_axis(single_score, candidates, axis=0)
            pairs = masked_sums.products_of_candidates(model, parameters, marked, candidates)
            return masked_sums.scores(tree, of_candidates, empty_score, pairs)

        def of_means() -> Array:
            return scores_of_means(model, parameters, marked, candidates, tree)

        own_score = jax.lax.cond(masked_sums.is_far(model, parameters), of_means, of_pairs)[first:]
    elif gram is None:
        own_score = scores_of_means(model, parameters, marked, candidates, tree)[first:]
    else:
        own_score = scores_of_sums(model, parameters, data, single_score, empty_score, candidates, tree, gram)
        own_score = own_score[first:]
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


def _moments(tree: StateList, own: Array, *, pairs: bool) -> Array:
    """Return Σ_s u_n(s) s_i of each candidate, followed by Σ_s u_n(s) s_i s_j of each pair with ``pairs``."""
    members = tree.states()[1 + tree.n_components :].T
    first, second = pairs_of(tree.n_components)
    both = np.concatenate([members, members[first] * members[second]]) if pairs else members
    return matmul(jnp.asarray(both, dtype=own.dtype), own)


def _sum_rows(model: Model, data: Array, scale: Array, singles: Array, candidates: Array, moments: Array) -> Sums:
    """Return sums over rows, scaled by ``scale``, given single causes (H, m) and moments. Missing data are NaN."""
    causes = add_by_index(singles, candidates, moments[: len(candidates)]) * scale
    probabilities = causes if model.sums_squares else singles * scale
    counts = _counts(probabilities, mask_of(model, data))
    data = jnp.where(jnp.isnan(data), 0, data) if model.missing else data
    return Sums(sum_in_double(causes, axis=1), counts, matmul(probabilities, data))


def _counts(probabilities: Array, observed: Array | None) -> Array:
    """Return sums of probabilities (H, m) over rows, (H, 1), or over the rows in which a value was observed, (H, D)."""
    return jnp.sum(probabilities, axis=1)[:, None] if observed is None else matmul(probabilities, observed)


class CandidateStates(Inference):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over the states K_n of each row (ET10 eq. 6 and 20).

    Rows whose free energy is below ``threshold`` are excluded from learning (the others are the set M of ET10 §2).
    """

    def __init__(
        self,
        model: Model,
        parameters: Parameters,
        tree: StateList,
        block: Block,
        temperature: Array,
        weighed: Weighed,
        threshold: Array | None = None,
        sums: Sums | None = None,
    ) -> None:
        self._model, self._parameters, self._tree = model, parameters, tree
        self.rows, self._temperature, self._weighed = block.rows, temperature, weighed
        self._given, self._given_sums, self._summary = block.weights, sums, block.summary
        self._origin = model.noise.origin(parameters.noise)
        self.observed = mask_of(model, block.rows)
        #: Data relative to the origin, with NaN for missing values (``_marked``) or zeros in their place (``_data``).
        self._marked = relative(block.rows, self._origin)
        self._data = observed_data(block.rows, self._origin, self.observed)
        self._base = log_base(model.noise, self._data, block.summary, parameters.noise, self.observed)
        kept = self._given
        if threshold is not None:
            kept = jnp.where(self.free_energy >= threshold.astype(kept.dtype), kept, 0)
        self.row_weights = kept
        self._scale = kept / weighed.z

    @property
    def _features(self) -> Features:
        of_features, _ = self._model.noise.split_parameters(self._parameters.noise)
        return Features(self._parameters.components, self._weighed.candidates, self._marked, of_features)

    @property
    def _n_components(self) -> int:
        return self._parameters.components.shape[0]

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Log evidence over the states considered, log Σ_{s ∈ K_n} p(s, y): (n,)."""
        return self._weighed.log_z + self._base

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy T log Σ p^β + b(y) of each row: (n,)."""
        return self._temperature.astype(self._base.dtype) * self._weighed.log_z + self._base

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Bound F = ⟨log p⟩ + H(q) with H(q) = −β⟨log p⟩ + log Σ p^β, summed over all rows."""
        cold = (1 - 1 / self._temperature).astype(self._base.dtype)
        return sum_in_double(self._given * (cold * self._weighed.log_joint + self.log_evidence))

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Free energy, summed over the rows that learning uses."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Expected log-likelihood, summed over the rows that learning uses."""
        return sum_in_double(self.row_weights * (self._weighed.score + self._base))

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Size of the terms that cancel in the log-likelihood, as given by the noise, summed over rows."""
        size = self._model.noise.magnitude(self._data, self._summary, self._parameters.noise)
        return sum_in_double(self.row_weights * size)

    @property
    def _n_candidates(self) -> int:
        return self._tree.n_components

    @property
    def _pieces(self) -> Pieces:
        return Pieces(len(self.rows), len(self._weighed.singles))

    @cached_property
    def _sums(self) -> Sums:
        """Sums over rows: those that were accumulated with the weights, or computed from stored weights."""
        if self._given_sums is not None:
            return self._given_sums
        pieces, weighed = self._pieces, self._weighed
        return pieces.sum(
            partial(_sum_rows, self._model),
            pieces.split_rows(self._marked),
            pieces.split(self._scale),
            weighed.singles,
            pieces.split(weighed.candidates),
            pieces.split(weighed.moments),
        )

    @property
    def mean_causes(self) -> Array:  # type: ignore[override]
        """Posterior mean ⟨s⟩ of the causes: (n, H)."""
        pieces, weighed = self._pieces, self._weighed
        moments = weighed.moments[: self._n_candidates]
        causes = pieces.map(add_by_index, weighed.singles, pieces.split(weighed.candidates), pieces.split(moments))
        return (pieces.join(causes) / weighed.z).T

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the posterior means, Σ_n w_n ⟨s⟩: (H,)."""
        return self._sums.causes

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of posterior means and data, Σ_n w_n ⟨s⟩ y_nᵀ: (H, D)."""
        if self.observed is not None:
            return cause_data_of(self.cause_pairs, self._parameters.components, self._slope)
        if self._model.linear:
            products = self._sums.data
        else:
            products = matmul((self.mean_causes * self.row_weights[:, None]).T, self._data)
        return absolute(products, self.total_causes, self._origin)

    @property
    def _slope(self) -> Array:
        """Products of causes and residuals, Σ_n w_n ⟨s (y − w̄)ᵀ⟩ over observed values: (H, D)."""
        assert self.observed is not None

        def by_states() -> Array:
            return self.pull((one, minus_mean))[0].astype(jnp.float64)

        if not self._model.sums_squares:
            return by_states()

        def by_pairs() -> Array:
            alone = masked_sums.slope_of_single(self._parameters, self._origin, self._sums.data, self._sums.counts)
            pairs = self._weighed.moments[self._n_candidates :] * self._scale
            return alone - masked_sums.explained_by_others(self._features, pairs)

        return jax.lax.cond(masked_sums.is_far(self._model, self._parameters), by_states, by_pairs)

    @cached_property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨s sᵀ⟩: (H, H). Only candidates of the same row are ever active together."""
        candidates, H = self._weighed.candidates, self._n_components
        first, second = pairs_of(len(candidates))
        sums = (self._weighed.moments[len(candidates) :] * self._scale).astype(jnp.float64)
        places = candidates[first] * H + candidates[second]
        both = jnp.zeros(H * H, sums.dtype).at[places].add(sums).reshape(H, H)
        return both + both.T + jnp.diag(self.total_causes)

    def pull(self, *terms: Term) -> Array:
        """Return the sums of :attr:`Inference.pull`, in which causes of a state share the credit for it.

        Single causes have the full credit for their states; candidates share that of theirs.
        """
        functions = list(dict.fromkeys(function for term in terms for function in term if function is not None))
        return self._pull_of_singles(terms) + self._pull_of_candidates(terms, functions)

    def _pull_of_singles(self, terms: tuple[Term, ...]) -> Array:
        means, overlap = relative(self._parameters.components, self._origin), jnp.ones((1, 1), self.rows.dtype)
        of_rows, of_data = self._counts_of_singles, self._data_of_singles
        return jnp.stack([_value(term, means, overlap, self._parameters.noise, of_data, of_rows) for term in terms])

    @property
    def _data_of_singles(self) -> Array:
        """Sums of data, relative to the origin, weighted by the probabilities of single causes: (H, D)."""
        if not self._model.sums_squares:
            return self._sums.data
        pieces = self._pieces
        return pieces.sum(
            lambda data, scale, singles: matmul(singles * scale, data),
            pieces.split_rows(self._data),
            pieces.split(self._scale),
            self._weighed.singles,
        )

    @property
    def _counts_of_singles(self) -> Array:
        """Sums of the probabilities of single causes, (H, 1), or over observed values, (H, D)."""
        if not self._model.sums_squares:
            return self._sums.counts
        pieces = self._pieces
        return pieces.sum(
            lambda marked, scale, singles: _counts(singles * scale, mask_of(self._model, marked)),
            pieces.split_rows(self._marked),
            pieces.split(self._scale),
            self._weighed.singles,
        )

    def _pull_of_candidates(self, terms: tuple[Term, ...], functions: list[Function]) -> Array:
        combination, tree = self._model.combination, self._tree
        first = 1 + tree.n_components
        weights = jnp.concatenate(
            [jnp.zeros((first, len(self.rows)), self.rows.dtype), self._weighed.own * self._scale]
        )
        overlap = jnp.asarray(combination.overlap(tree.states()), dtype=self.rows.dtype)

        noise = self._model.noise
        _, shared = noise.split_parameters(self._parameters.noise)

        def values_of(mine: Array, data: Array, of_feature: dict[str, Array], weights: Array) -> list[Array]:
            own = shared | of_feature
            means = combination.relative_means(mine, tree, noise.origin(own))
            # The credit of causes does not depend on the data, so terms that share a function share one pull.
            pulled = {
                function: combination.pull(mine, tree, function(means, overlap, own) * weights, self._temperature)
                for function in functions
            }

            def value_of(term: Term) -> Array:
                of_data, of_mean = term
                value = jnp.zeros_like(mine)
                value += 0 if of_data is None else pulled[of_data] * data
                value += 0 if of_mean is None else pulled[of_mean]
                return jnp.where(jnp.isnan(data), 0, value) if self._model.missing else value

            return [value_of(term) for term in terms]

        return self._features.sum_by_cause(values_of, weights)

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Expected squared residuals Σ_n w_n ⟨(y_nd − w̄_d)²⟩: (D,)."""
        noise, combination, tree = self._model.noise, self._model.combination, self._tree
        _, shared = noise.split_parameters(self._parameters.noise)
        first = 1 + tree.n_components

        def of_candidates(mine: Array, values: Array, of_feature: dict[str, Array], weights: Array) -> Array:
            means = combination.relative_means(mine, tree, noise.origin(shared | of_feature))[first:]
            found = jnp.sum((values - means) ** 2 * weights, axis=0)
            return jnp.where(jnp.isnan(values), 0, found) if self._model.missing else found

        own = sum_in_double(self._features.map(of_candidates, self._weighed.own * self._scale), axis=0)
        rows = observed_data(self.rows, None, self.observed).astype(jnp.float64)
        empty = matmul((self._weighed.empty * self._scale).astype(jnp.float64), rows**2)
        # Sums over single causes are expanded around the origin.
        means, squares = relative(self._parameters.components, self._origin).astype(jnp.float64), self._data**2
        alone = jnp.sum(self._pieces.join(self._weighed.singles), axis=0) * self._scale
        singles = matmul(alone, squares) + jnp.sum(
            means * (means * self._counts_of_singles - 2 * self._data_of_singles), axis=0
        )
        return own + empty + singles

    def mean_data(self) -> Array:
        """Return the reconstruction Σ_s q_n(s) w̄(s) of each row: (n, D)."""
        components, z = self._parameters.components, self._weighed.z
        if self._model.combination.linear:
            return matmul(self.mean_causes, components)
        first = 1 + self._tree.n_components

        def mean(mine: Array, values: Array, of_feature: dict[str, Array], own: Array) -> Array:
            return jnp.sum(self._model.combination.combine(mine, self._tree)[first:] * own, axis=0)

        of_candidates = self._features.map(mean, self._weighed.own)
        return (matmul(self._pieces.join(self._weighed.singles).T, components) + of_candidates) / z[:, None]

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states of each row, among single causes and states of candidates."""
        H, first = self._n_components, 1 + self._tree.n_components
        singles = self._pieces.join(self._weighed.singles)
        u = jnp.concatenate([self._weighed.empty[None], singles, self._weighed.own])
        probabilities, best = jax.lax.top_k((u / self._weighed.z).T, top)
        alone = best[..., None] - 1 == jnp.arange(H)
        members = jnp.asarray(self._tree.states())[jnp.maximum(best - 1 - H, 0) + first]
        places = self._weighed.candidates.T[:, None, :, None] == jnp.arange(H)
        together = jnp.any(places & (members[..., None] > 0), axis=2)
        states = jnp.where((best > H)[..., None], together, alone).astype(jnp.int8)
        return Recognized(states, probabilities, self.log_evidence)


def _value(term: Term, means: Array, overlap: Array, noise: dict[str, Array], of_data: Array, of_rows: Array) -> Array:
    """Return f(w̄)·Σ q y + g(w̄)·Σ q of a term (f, g)."""
    data_function, mean_function = term
    value = jnp.zeros_like(means)
    value += 0 if data_function is None else data_function(means, overlap, noise) * of_data
    value += 0 if mean_function is None else mean_function(means, overlap, noise) * of_rows
    return value
