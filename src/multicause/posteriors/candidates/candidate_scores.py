"""Scores Σ_d η(w̄_d)·y_d − A(w̄_d) of the states of a row's candidates."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul
from multicause.generative import GenerativeModel
from multicause.posteriors.candidates.features import Features
from multicause.posteriors.expectations.expansion import ROUNDING, split_products, standardized
from multicause.posteriors.expectations.masked_sums import members_of
from multicause.records import Parameters
from multicause.states.state_list import StateList, pairs_of


class Gram(NamedTuple):
    """Scalar products of components from which states of sums are scored."""

    plain: Array  # (H, H) η(W_h)·W_h'
    far: Array  # () whether rounding errors of these products would matter in scores
    parts: Array  # (2, H + 1, H + 1) if ``far``: split_products of standardized components and origin


def gram_of(model: GenerativeModel, parameters: Parameters, max_active: int) -> Gram:
    """Return scalar products of all pairs of causes, in two parts if components or the data's offset are large."""
    natural = model.noise.natural(parameters.components, parameters.noise)
    plain = matmul(natural, parameters.components.T)
    components, origin = standardized(model, parameters)
    largest = jnp.maximum(jnp.max(jnp.diagonal(plain)), jnp.sum(origin**2))
    far = largest * jnp.finfo(plain.dtype).eps > ROUNDING

    def split() -> Array:
        # The square of a sum of max_active components and the origin has this many products.
        return split_products(jnp.concatenate([components, origin[None]]), (max_active + 1) ** 2)

    nothing = jnp.zeros((2, len(plain) + 1, len(plain) + 1), jnp.float64)
    return Gram(plain, far, jax.lax.cond(far, split, lambda: nothing))


def absolute_products(
    model: GenerativeModel, parameters: Parameters, natural: Array, products: Array, rows: Array
) -> Array:
    """Return η(W)·y (H, n), given η(W − o)·(y − o), if η is proportional to w; selections need unshifted data."""
    origin = model.noise.origin(parameters.noise)
    if origin is None or not model.noise.linear:
        return products
    if model.missing:
        observed = jnp.where(jnp.isnan(rows), 0, rows)
        return matmul(model.noise.natural(parameters.components, parameters.noise), observed.T)
    return products + matmul(natural, origin)[:, None] + matmul(rows, model.noise.natural(origin, parameters.noise))


def scores_of_means(
    model: GenerativeModel, parameters: Parameters, data: Array, candidates: Array, tree: StateList
) -> Array:
    """Return Σ_d η(w̄_d)·y_d − A(w̄_d) of all states of the candidates: (S, n). Missing values are NaN and left out."""
    noise, combination, components = model.noise, model.combination, parameters.components
    of_features, shared = noise.split_parameters(parameters.noise)
    origin = noise.origin(parameters.noise)
    # Components are shifted before they are gathered for each row.
    components = components if origin is None else combination.shift(components, origin)

    def scores(mine: Array, values: Array, of_feature: dict[str, Array]) -> Array:
        noise_parameters = shared | of_feature
        point = noise.origin(noise_parameters)
        means = combination.combine(mine, tree, None if point is None else -point)
        natural = (
            combination.natural(noise, mine, tree, noise_parameters)
            if point is None
            else noise.natural(means, noise_parameters)
        )
        log_likelihood = natural * values - noise.log_normalizer(means, noise_parameters)
        return jnp.where(jnp.isnan(values), 0, log_likelihood) if model.missing else log_likelihood

    return Features(components, candidates, data, of_features).sum(scores, tree.n_states)


def scores_of_sums(
    model: GenerativeModel,
    parameters: Parameters,
    data: Array,
    singles: Array,
    empty: Array,
    candidates: Array,
    tree: StateList,
    gram: Gram,
) -> Array:
    """Return the scores of all states of the candidates (S, n), if causes add up, without means.

    They follow from scores of single causes (H, n) and of the empty state (n,), and from products of components. With e
    the score of the empty state, the score of a state is e + Σ_i s_i (single_i − e) − Σ_{i<j} s_i s_j G_ij.
    """
    first, second = pairs_of(len(candidates))
    members = members_of(tree)

    def sums(of_singles: Array, products: Array) -> Array:
        """Return sums over the members of each state, given (..., H', n) and (..., H, H)."""
        places = candidates[first] * products.shape[-1] + candidates[second]
        of_pairs = products.reshape(*products.shape[:-2], -1)[..., places]
        return matmul(jnp.asarray(members, of_singles.dtype), jnp.concatenate([of_singles, of_pairs], axis=-2))

    def near() -> Array:
        return sums(jnp.take_along_axis(singles, candidates, axis=0) - empty, gram.plain) + empty

    def far() -> Array:
        components, origin = standardized(model, parameters)
        values = model.noise.standardize(data.astype(jnp.float64), parameters.noise).T
        of_data = jnp.take_along_axis(matmul(components, values), candidates, axis=0)
        of_causes = gram.parts[:, -1] - 0.5 * jnp.diagonal(gram.parts, axis1=1, axis2=2)
        of_singles = of_causes[:, candidates].at[1].add(of_data)
        whole, rest = sums(of_singles, gram.parts) - of_causes[:, -1, None, None]
        return (whole + (rest - matmul(origin, values))).astype(data.dtype)

    return jax.lax.cond(gram.far, far, near)
