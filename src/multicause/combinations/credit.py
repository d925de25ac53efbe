"""Credit under the max rule, in four ways: each is exact, and the fastest for its kind of state list.

With x = log W or W, cause h has the share exp(k x_h) / Σ_{h'∈s} exp(k x_h') of state s, and its credit is a power of
that share. All functions return Σ_s credit_hd(s) · v_d(s) for values (..., S, D): (..., H, D).
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from multicause.arrays import Array, matmul, stored
from multicause.posteriors.state_tree import StateTree, Step, all_states

# Active causes up to which powers of sums of exponentials are taken by a polynomial: beyond, its degree would be as
# costly as a logarithm and an exponential (measured for H' = 5, γ = 3: 247 instead of 340 ms in single precision, 680
# instead of 1320 ms in double precision, for 40000 rows of 100 dimensions).
MOST_FOR_POLYNOMIAL = 4


def pull_by_halves(x: Array, tree: StateTree, values: Array, sharpness: Array, exponent: Array) -> Array:
    """For the list of all states: each is a state of the first half of the causes and one of the second half.

    Shares are formed within each half, relative to its own largest x, and then between the two halves. That takes two
    exponentials for each state, and few operations to compile. Exact in any range. Causes lie in x as (H, D).
    """
    H = tree.n_components
    first, second = (_Half.of(part, sharpness, exponent) for part in (x[: H // 2], x[H // 2 :]))
    lead = second.largest[:, None] - first.largest  # (S₂, S₁, D), as state s₁ of the first half has the lower digits
    # Two empty halves have no lead, and no causes that could have credit.
    distance = sharpness * jnp.where(jnp.isnan(lead), 0, jnp.abs(lead))
    lower, loser = jnp.exp(-distance), jnp.exp(-exponent * distance)
    wins = lead > 0  # whether the largest x is in the second half
    total = jnp.where(wins, first.total * lower + second.total[:, None], first.total + second.total[:, None] * lower)
    shared = values.reshape(*values.shape[:-2], *lead.shape) * _inverse_power(total, exponent)
    to_first = jnp.sum(shared * jnp.where(wins, loser, 1), axis=-3)
    to_second = jnp.sum(shared * jnp.where(wins, 1, loser), axis=-2)
    received = [
        jnp.sum(value[..., None, :] * half.shares, axis=-3) for value, half in ((to_first, first), (to_second, second))
    ]
    return jnp.concatenate(received, axis=-2)


class _Half(NamedTuple):
    """All states of some causes, relative to the largest x of each state."""

    largest: Array  # (S, D), −∞ for the empty state
    total: Array  # (S, D) Σ exp(k (x − largest))
    shares: Array  # (S, H, D) exp(k e (x − largest)) of the causes of a state, 0 for the others

    @classmethod
    def of(cls, x: Array, sharpness: Array, exponent: Array) -> _Half:
        active = jnp.asarray(all_states(len(x)).states(), dtype=bool)[:, :, None]
        largest = jnp.max(jnp.where(active, x, -jnp.inf), axis=1, initial=-jnp.inf)
        below = sharpness * jnp.where(active, x - largest[:, None], 0)
        total = jnp.sum(jnp.where(active, jnp.exp(below), 0), axis=1)
        return cls(largest, total, jnp.where(active, jnp.exp(exponent * below), 0))


def pull_by_members(x: Array, tree: StateTree, values: Array, sharpness: Array, exponent: Array) -> Array:
    """For short lists of sparse states: every cause sums over the states that it is in, written out one by one.

    The compiler then makes one loop of it all, in which nothing but duels between two causes is ever stored (190
    instead of 235 ms, in the example above, on a CPU, and one kernel on an accelerator). Exact in any range.
    """
    H, states = tree.n_components, tree.states()
    distance = sharpness * jnp.abs(jnp.concatenate([x[i : i + 1] - x[:i] for i in range(1, H)]))
    exponentials = stored((jnp.exp(-distance), jnp.exp(-exponent * distance)))
    lower, loser = (
        {pair: table[max(pair) * (max(pair) - 1) // 2 + min(pair)] for pair in permutations(range(H), 2)}
        for table in exponentials
    )
    powers = [_PowerOfTotals(x.dtype, exponent, k) for k in range(tree.max_active + 1)]
    received: list[Any] = [jnp.zeros_like(values[..., 0, :]) for _ in range(H)]
    for s, state in enumerate(states):
        members = [int(h) for h in np.flatnonzero(state)]
        if not members:
            continue
        totals = [1 + sum(lower[i, j] for j in members if j != i) if len(members) > 1 else 1 for i in members]
        total: Any = totals[0]
        largest = x[members[0]]
        shares = [1 if i == members[0] else loser[i, members[0]] for i in members]
        for candidate, if_largest in zip(members[1:], totals[1:], strict=True):
            wins = x[candidate] > largest
            total, largest = jnp.where(wins, if_largest, total), jnp.maximum(largest, x[candidate])
            shares = [
                jnp.where(wins, 1 if i == candidate else loser[i, candidate], share)
                for i, share in zip(members, shares, strict=True)
            ]
        value = values[..., s, :] * (powers[len(members)](total) if len(members) > 1 else 1)
        for i, share in zip(members, shares, strict=True):
            received[i] = received[i] + value * share
    return jnp.stack(received, axis=-2)


def pull_by_pairs(x: Array, tree: StateTree, values: Array, sharpness: Array, exponent: Array) -> Array:
    """For the empty state, single causes and all pairs: each pair is a duel, whose shares are two sigmoids."""
    H = tree.n_components
    members = tree.states()[1 + H :]
    first, second = (np.array([np.flatnonzero(pair)[k] for pair in members]) for k in (0, 1))
    lead = sharpness * (x[..., first, :] - x[..., second, :])
    pairs = values[..., 1 + H :, :]
    to_first, to_second = (jnp.asarray(np.eye(H)[:, winner], dtype=x.dtype) for winner in (first, second))
    received = matmul(to_first, pairs * jnp.exp(-exponent * jnp.logaddexp(0, -lead)))
    received += matmul(to_second, pairs * jnp.exp(-exponent * jnp.logaddexp(0, lead)))
    return values[..., 1 : 1 + H, :] + received


class _Kin(NamedTuple):
    """States that are born together, each relative to the largest x of its causes; arrays are (..., states, D)."""

    largest: Array
    total: Array  # Σ exp(k (x − largest))
    wins: Array  # whether the newest cause is the largest
    loser: Array  # exp(−k |x − x'| e) of the newest cause and the largest of its parent
    duels: dict[int, tuple[Array, Array]]  # exp(−k |x − x'|) and exp(−k |x − x'| e) for each cause that may come next


def pull_by_duels(x: Array, tree: StateTree, values: Array, sharpness: Array, exponent: Array) -> Array:
    """For sparse lists: credits handed down, with exponentials of differences between two causes only.

    The largest x of a state is that of one of its causes, so H (H − 1) / 2 duels are all there are, however many
    states; each state chooses among them. Exact in any range.
    """
    distance = [sharpness * jnp.abs(x[..., :h, :] - x[..., h : h + 1, :]) for h in range(tree.n_components)]
    pairs = [(jnp.exp(-d), jnp.exp(-exponent * d)) for d in distance]
    nothing = jnp.zeros_like(x[..., :1, :])
    root = _Kin(nothing - jnp.inf, nothing, nothing > 0, nothing, dict.fromkeys(range(len(pairs)), (nothing, nothing)))
    kins = {0: root}
    for step in tree.all_steps():
        parents = [kins[start] for start in tree.kins_of(step.parents)]
        newest = _of_cause(x, step)
        largest = _join([parent.largest for parent in parents])
        total = _join([parent.total for parent in parents])
        lower, loser = (_join([parent.duels[step.cause][k] for parent in parents]) for k in (0, 1))
        wins = newest > largest
        duels = {}
        for h in tree.heirs(step):
            with_newest = [_of_cause(pair, step) for pair in pairs[h]]
            inherited = [_join([parent.duels[h][k] for parent in parents]) for k in (0, 1)]
            duels[h] = (
                jnp.where(wins, with_newest[0], inherited[0]),
                jnp.where(wins, with_newest[1], inherited[1]),
            )
        total = jnp.where(wins, total * lower + 1, total + lower)
        kins[step.children.start] = _Kin(jnp.maximum(largest, newest), total, wins, loser, duels)
    total = _join([kins[start].total for start in sorted(kins)])
    share = stored(_PowerOfTotals(x.dtype, exponent, tree.max_active)(total))

    def shares(step: Step) -> tuple[Array, Array]:
        kin = kins[step.children.start]
        return jnp.where(kin.wins, 1, kin.loser), jnp.where(kin.wins, kin.loser, 1)

    return tree.descend(values * share, shares)


def _inverse_power(total: Array, exponent: Array) -> Array:
    """total^{−exponent}; the state without causes has no share to give, and its total of zero must not become infinite.

    The barrier keeps the compiler from taking the same powers again for each of several values.
    """
    return stored(jnp.exp(-exponent * jnp.log(jnp.where(total > 0, total, 1))))


class _PowerOfTotals:
    """total^{−exponent} for totals between 1 and ``most``, to rounding; any finite number for the empty state's zero.

    Where the interval is short, by a polynomial: interpolation at Chebyshev's points converges like r^{−degree}, where
    r is the sum of the half-axes of the ellipse, with foci at the ends of the interval, through the pole at zero.
    """

    def __init__(self, dtype: Any, exponent: Array, most: int) -> None:
        self._exponent = exponent
        self._coefficients = None
        if not 1 < most <= MOST_FOR_POLYNOMIAL:
            return
        self._middle, self._half = (most + 1) / 2, (most - 1) / 2
        pole = self._middle / self._half
        degree = int(np.ceil(np.log(float(jnp.finfo(dtype).eps)) / -np.log(pole + np.sqrt(pole**2 - 1))))
        angles = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
        samples = jnp.asarray(self._middle + self._half * np.cos(angles)) ** -exponent.astype(jnp.float64)
        # Chebyshev's coefficients first: solving for those of the powers at once would lose half of the digits.
        to_chebyshev = 2 / (degree + 1) * np.cos(np.outer(np.arange(degree + 1), angles))
        to_chebyshev[0] /= 2
        to_powers = np.zeros((degree + 1, degree + 1))
        for k in range(degree + 1):
            to_powers[: k + 1, k] = chebyshev.cheb2poly(np.eye(degree + 1)[k, : k + 1])
        self._coefficients = matmul(jnp.asarray(to_powers), matmul(jnp.asarray(to_chebyshev), samples)).astype(dtype)

    def __call__(self, total: Array) -> Array:
        if self._coefficients is None:
            return jnp.exp(-self._exponent * jnp.log(jnp.maximum(total, 1)))
        t = total * (1 / self._half) - self._middle / self._half
        power = self._coefficients[-1] * t + self._coefficients[-2]
        for k in range(len(self._coefficients) - 3, -1, -1):
            power = power * t + self._coefficients[k]
        return power


def _of_cause(values: Array, step: Step) -> Array:
    """The values of a step's cause, out of (..., H, D): (..., 1, D)."""
    return values[..., step.cause : step.cause + 1, :]


def _join(arrays: list[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else jnp.concatenate(arrays, axis=-2)
