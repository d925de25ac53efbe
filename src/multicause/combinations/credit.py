"""Credit under the max rule, by exact algorithms, each the fastest for one kind of states.

With x = log W or W, cause h has the share exp(k x_h) / Σ_{h'∈s} exp(k x_h') of state s, and its credit is a power of
that share. All functions return Σ_s credit_hd(s) · v_d(s) for values (..., S, D): (..., H, D).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from multicause.arrays import Array, matmul, rows_at, stored, sum_rows_at
from multicause.states.state_list import StateList, all_states

# Number of active causes up to which powers of sums of exponentials are computed by a polynomial: for more, its degree
# would be as costly as a logarithm and an exponential (measured for H' = 5, γ = 3: 247 instead of 340 ms in single
# precision, 680 instead of 1320 ms in double precision, for 40000 rows of 100 dimensions).
MOST_FOR_POLYNOMIAL = 4


def pull_by_halves(x: Array, states: StateList, values: Array, sharpness: Array, exponent: Array) -> Array:
    """Return credited values for the list of all states, each a pair of states of the first and second half of causes.

    Shares are computed within each half, relative to its own largest x, and then between the two halves. That takes two
    exponentials for each state, and few operations to compile. It is exact for any range of values. x is (H, D).
    """
    H = states.n_components
    first, second = (_Half.of(part, sharpness, exponent) for part in (x[: H // 2], x[H // 2 :]))
    lead = second.largest[:, None] - first.largest  # (S₂, S₁, D), as state s₁ of the first half varies fastest
    # Two empty halves give NaN, and have no causes that could have credit.
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


def pull_by_causes(x: Array, sharpness: Array, exponent: Array, states: Array, values: Array) -> Array:
    """Return credited values for any states (S, H), with one exponential for each cause, state and dimension.

    Causes are processed one after the other, so that no array is larger than the values. x is (H, D).
    """
    active = states > 0

    def largest_of(largest: Array, cause: tuple[Array, Array]) -> tuple[Array, None]:
        own, on = cause
        return jnp.maximum(largest, jnp.where(on[:, None], own, -jnp.inf)), None

    nothing = jnp.full((len(states), x.shape[1]), -jnp.inf, x.dtype)
    largest = jax.lax.scan(largest_of, nothing, (x, active.T))[0]
    largest = jnp.where(jnp.isfinite(largest), largest, 0)  # of the empty state, whose causes have no credit

    def add(total: Array, cause: tuple[Array, Array]) -> tuple[Array, None]:
        own, on = cause
        return total + jnp.where(on[:, None], jnp.exp(sharpness * (own - largest)), 0), None

    total = jax.lax.scan(add, jnp.zeros_like(largest), (x, active.T))[0]
    shared = values * _inverse_power(total, exponent)

    def received(cause: tuple[Array, Array]) -> Array:
        own, on = cause
        return jnp.sum(shared * jnp.where(on[:, None], jnp.exp(exponent * sharpness * (own - largest)), 0), axis=-2)

    return jnp.moveaxis(jax.lax.map(received, (x, active.T)), 0, -2)


def pull_by_members(x: Array, states: StateList, values: Array, sharpness: Array, exponent: Array) -> Array:
    """Return credited values for short lists of sparse states on an accelerator, with unrolled sums over states.

    The compiler then creates a single kernel, in which only comparisons of two causes are stored. It is exact for any
    range of values.
    """
    H = states.n_components
    distance = sharpness * jnp.abs(jnp.concatenate([x[i : i + 1] - x[:i] for i in range(1, H)]))
    exponentials = stored((jnp.exp(-distance), jnp.exp(-exponent * distance)))
    lower, loser = (
        {pair: table[max(pair) * (max(pair) - 1) // 2 + min(pair)] for pair in permutations(range(H), 2)}
        for table in exponentials
    )
    powers = [_PowerOfTotals(x.dtype, exponent, k) for k in range(states.max_active + 1)]
    received: list[Any] = [jnp.zeros_like(values[..., 0, :]) for _ in range(H)]
    for s, state in enumerate(states.states()):
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


def pull_by_levels(x: Array, states: StateList, values: Array, sharpness: Array, exponent: Array) -> Array:
    """Return credited values for lists with the sparsest states first, from each state's parent and its last cause.

    The parent of a state is the state without its last cause. Shares are computed from states with two active causes up
    to those with most, relative to the largest x of each state, and values are passed down in reverse order, to the
    last cause of a state and to its parent. That takes two exponentials for each state. It is exact for any range of
    values. States with the same number of active causes are processed together, by constant indices, so that the length
    of the program does not depend on their number.
    """
    levels = states.levels()
    largest, total = x, jnp.ones_like(x)
    ways = []
    for level in levels[2:]:
        last, parents = rows_at(x, level.last), rows_at(largest, level.parents)
        distance = sharpness * jnp.abs(last - parents)
        lower, loser = jnp.exp(-distance), jnp.exp(-exponent * distance)
        wins = last > parents
        before = rows_at(total, level.parents)
        total = jnp.where(wins, before * lower + 1, before + lower)
        largest, total, loser = stored((jnp.maximum(last, parents), total, loser))
        ways.append((wins, loser, total))

    received, handed_down = values[..., levels[1].states, :], jnp.zeros((), x.dtype)
    for level, smaller, (wins, loser, total) in zip(levels[:1:-1], levels[-2:0:-1], reversed(ways), strict=True):
        power = _PowerOfTotals(x.dtype, exponent, level.members.shape[1])(total)
        value = stored(values[..., level.states, :] * power + handed_down)
        received = received + sum_rows_at(value * jnp.where(wins, 1, loser), level.last, len(x))
        handed_down = sum_rows_at(value * jnp.where(wins, loser, 1), level.parents, len(smaller.members))
    return received + handed_down


def _inverse_power(total: Array, exponent: Array) -> Array:
    """Return total^{−exponent}, with a finite value for the empty state, whose total is zero and which has no shares.

    The barrier keeps the compiler from recomputing the same powers for each of several values.
    """
    return stored(jnp.exp(-exponent * jnp.log(jnp.where(total > 0, total, 1))))


@lru_cache
def _powers_of_chebyshev(degree: int) -> np.ndarray:
    """Return the coefficients of powers (rows) of the Chebyshev polynomials (columns) up to a degree."""
    to_powers = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        to_powers[: k + 1, k] = chebyshev.cheb2poly(np.eye(degree + 1)[k, : k + 1])
    return to_powers


class _PowerOfTotals:
    """The power total^{−exponent} for totals from 1 to ``most``, to rounding errors; finite for the empty state's zero.

    For a short interval it is computed by a polynomial: interpolation at Chebyshev points converges like r^{−degree},
    where r is the sum of the half-axes of the ellipse, with foci at the ends of the interval, through the pole at zero.
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
        # Chebyshev coefficients first: solving for the coefficients of powers directly would lose half of the digits.
        to_chebyshev = 2 / (degree + 1) * np.cos(np.outer(np.arange(degree + 1), angles))
        to_chebyshev[0] /= 2
        to_powers = jnp.asarray(_powers_of_chebyshev(degree))
        self._coefficients = matmul(to_powers, matmul(jnp.asarray(to_chebyshev), samples)).astype(dtype)

    def __call__(self, total: Array) -> Array:
        if self._coefficients is None:
            return jnp.exp(-self._exponent * jnp.log(jnp.maximum(total, 1)))
        t = total * (1 / self._half) - self._middle / self._half
        power = self._coefficients[-1] * t + self._coefficients[-2]
        for k in range(len(self._coefficients) - 3, -1, -1):
            power = power * t + self._coefficients[k]
        return power
