"""Independent binary causes, conditioned on few active ones: the sums over K of ET10 algorithm 2.

|s| has a Poisson-binomial distribution: its generating polynomial is the product of (1 − π_h) + π_h x over all causes.
Only the first γ + 1 coefficients are needed. On a CPU they are computed by a recursion over causes, with H·γ
operations. An accelerator would take longer to start H steps than to compute them, so there polynomials are multiplied
pairwise.
"""

import jax
import jax.numpy as jnp

from multicause.arrays import Array, one_by_one

# Number of fixed-point iterations for the activities; the next M-step continues from their result.
ROUNDS = 20
# Means of truncated causes that no activity can produce are moved this far inside the possible range.
MARGIN = 1e-6
# Relative distance of Σ_h π_h from its limit below which the limit counts as reached.
AT_LIMIT = 1e-3


def _counts(activity: Array, most: int) -> Array:
    """Return P(|s| = k) for k = 0 … most, of the first h causes, h = 0 … H: (H + 1, most + 1)."""
    empty = jnp.zeros(most + 1, activity.dtype).at[0].set(1)

    def add(before: Array, chance: Array) -> tuple[Array, Array]:
        shifted = jnp.concatenate([jnp.zeros(1, before.dtype), before[:-1]])
        after = (1 - chance) * before + chance * shifted
        return after, after

    return jnp.concatenate([empty[None], jax.lax.scan(add, empty, activity)[1]])


def _product(activity: Array, most: int) -> Array:
    """Return P(|s| = k) for k = 0 … most, of all causes (..., H), by a tree of polynomial products: (..., most + 1)."""
    first = jnp.stack([1 - activity, activity], axis=-1)
    polynomials = jnp.pad(first, [(0, 0)] * activity.ndim + [(0, max(0, most - 1))])[..., : most + 1]
    while polynomials.shape[-2] > 1:
        if polynomials.shape[-2] % 2:
            one = jnp.zeros_like(polynomials[..., :1, :]).at[..., 0].set(1)
            polynomials = jnp.concatenate([polynomials, one], axis=-2)
        a, b = polynomials[..., ::2, :], polynomials[..., 1::2, :]
        terms = [sum(a[..., i] * b[..., k - i] for i in range(k + 1)) for k in range(most + 1)]
        polynomials = jnp.stack(terms, axis=-1)
    return polynomials[..., 0, :]


def log_mass(activity: Array, max_active: int) -> Array:
    """Return log P(|s| ≤ γ), the log probability of at most γ active causes: ()."""
    counts = _counts(activity, max_active)[-1] if one_by_one() else _product(activity, max_active)
    return jnp.log(jnp.sum(counts))


def _of_others(activity: Array, most: int) -> tuple[Array, Array]:
    """Return P(|s_{−h}| ≤ γ) and P(|s_{−h}| ≤ γ − 1) of all causes but h: (H,) each."""
    if not one_by_one():
        others = jnp.where(jnp.eye(len(activity), dtype=bool), 0, activity)
        counts = _product(others, most)
        return jnp.sum(counts, axis=1), jnp.sum(counts[:, :-1], axis=1)
    before, after = _counts(activity, most)[:-1], _counts(activity[::-1], most)[:-1][::-1]
    # Combine the causes before h with those after it.
    cumulative = jnp.cumsum(after, axis=1)[:, ::-1]
    return jnp.sum(before * cumulative, axis=1), jnp.sum(before[:, :-1] * cumulative[:, 1:], axis=1)


def untruncated(means: Array, start: Array, max_active: int) -> Array:
    """Return activities π for which E[s_h | |s| ≤ γ] are the given means, by fixed-point iteration from ``start``.

    By Bayes' rule, odds(mean_h) = odds(π_h) · P(|s_{−h}| ≤ γ − 1) / P(|s_{−h}| ≤ γ); it is solved for π_h with the
    other activities fixed.

    If nearly all rows have γ active causes, they contain no information about rows with more: the solution then grows
    without bound, and with each iteration fewer rows are used, which lets it grow further. So the expected number of
    active causes is limited to γ + 1 (see :func:`at_limit`).
    """
    most = max_active * (1 - MARGIN)
    means = jnp.clip(means * jnp.minimum(1, most / jnp.maximum(jnp.sum(means), MARGIN)), MARGIN, 1 - MARGIN)
    logit = jnp.log(means) - jnp.log1p(-means)

    def adapt(_: int, activity: Array) -> Array:
        up_to, up_to_less = _of_others(activity, max_active)
        return _limited(jax.nn.sigmoid(logit + jnp.log(up_to) - jnp.log(up_to_less)), max_active)

    return jax.lax.fori_loop(0, ROUNDS, adapt, _limited(start, max_active))


def at_limit(activity: Array, max_active: int) -> bool:
    """Return whether the limit of :func:`untruncated` has reduced the activities."""
    return max_active < len(activity) and float(jnp.sum(activity)) > (max_active + 1) * (1 - AT_LIMIT)


def _limited(activity: Array, max_active: int) -> Array:
    return activity * jnp.minimum(1, (max_active + 1) / jnp.sum(activity))
