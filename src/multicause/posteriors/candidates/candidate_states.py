"""Inference over states of a few candidates, selected for each row, and over states with a single cause."""

from functools import cached_property, partial

import jax
import jax.numpy as jnp

from multicause.arrays import Array, add_by_index, matmul, observed_data, relative, sum_in_double
from multicause.expectations import Function, Inference, Recognized, Term
from multicause.generative import GenerativeModel
from multicause.posteriors.candidates.candidate_pairs import explained_by_others
from multicause.posteriors.candidates.candidate_weights import Sums, Weighed, counts_of, sum_rows
from multicause.posteriors.candidates.features import Features
from multicause.posteriors.candidates.pieces import Pieces
from multicause.posteriors.expectations import masked_sums
from multicause.posteriors.expectations.expansion import absolute
from multicause.posteriors.expectations.observed import cause_data_of, log_base, mask_of, minus_mean, one
from multicause.records import Block, Parameters
from multicause.states.state_list import StateList, pairs_of


class CandidateStates(Inference):
    """Expectations under q_n(s) ∝ p(s, y_n)^β over the states K_n of each row (ET10 eq. 6 and 20).

    Rows whose free energy is below ``threshold`` are excluded from learning (the others are the set M of ET10 §2).
    """

    def __init__(
        self,
        model: GenerativeModel,
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
            partial(sum_rows, self._model),
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
            return alone - explained_by_others(self._features, pairs)

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
            lambda marked, scale, singles: counts_of(singles * scale, mask_of(self._model, marked)),
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
            noise_parameters = shared | of_feature
            means = combination.relative_means(mine, tree, noise.origin(noise_parameters))
            # The credit of causes does not depend on the data, so terms that share a function share one pull.
            pulled = {
                function: combination.pull(
                    mine, tree, function(means, overlap, noise_parameters) * weights, self._temperature
                )
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
            squares = jnp.sum((values - means) ** 2 * weights, axis=0)
            return jnp.where(jnp.isnan(values), 0, squares) if self._model.missing else squares

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
