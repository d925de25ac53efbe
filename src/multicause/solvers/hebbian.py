"""Softmax network: online Hebbian learning, one row at a time (MCA08 eq. 23–25, GSN07 eq. 22).

All presentations of an epoch run inside one compiled loop. An epoch draws N rows at random with replacement; if rows
have weights, they are drawn from the data in which each row is repeated as its weight says
(:mod:`multicause.solvers.presentation`). Arrays with an entry for each row or presentation are filled up to a rounded
number, so that data sets of similar sizes share one program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.annealing import LinearCooling
from multicause.arrays import Array, matmul
from multicause.em.usage import hardly_used
from multicause.engines import blocks
from multicause.noises import Poisson

# Presentations in one chunk, at most; the noise of a chunk is drawn at once.
CHUNK = 100
# A probe has lost its unit when the response of another unit is e to this power times as large. The margin is needed
# because, with more units than causes, several units share one cause and take turns.
LOST = 2.0


class HebbianRule(NamedTuple):
    """Constants of the learning rule, as arrays without axes."""

    rate: Array  # ε, the learning rate
    noise: Array  # σ of the Gaussian noise added to the weights at each presentation
    total: Array  # C, the sum of the weights of each unit
    odds: Array  # π/(1 − π)
    temperature: Array  # fixed temperature, used without a schedule


class Shown(NamedTuple):
    """Rows to show, in the given order or as a pool from which an epoch draws."""

    rows: Array  # (N', D) rows of the data; those that fill them up are never shown
    places: Any  # (n',) indices of the rows, each as often as it counts
    number: Any  # () number of places that count

    @classmethod
    def of(cls, rows: Array, places: np.ndarray) -> Shown:
        """Fill the places (n,) up to a rounded number; there may be none, if weights are small."""
        padded = np.zeros(blocks.rounded(max(len(places), 1), up=True), places.dtype)
        padded[: len(places)] = places
        return cls(rows, padded, np.asarray(len(places)))


class Network(NamedTuple):
    """State of a softmax network during learning."""

    weights: Array  # (H, D)
    presented: Array  # () number of presentations
    average: Array  # (H, D) mean weights of the current epoch
    response: Array  # (H,) mean response in the current epoch
    probes: Array  # (K, D) rows whose units must not change for the network to count as stable
    counted: Array  # (K,) whether a probe takes part in the stopping rule
    units: Array  # (K,) the unit that responds to each probe
    since: Array  # () presentation since which no unit has changed


def responses(weights: Array, rows: Array, temperature: Array, log_odds: Array) -> Array:
    """Compute g, the generalized softmax responses of the units to some rows (n, D): (n, H).

    Pairs of units appear in the denominator only, so a row that two units explain better than one changes no weights.
    """
    noise = Poisson()
    first, second = np.triu_indices(len(weights), k=1)
    natural, mean = noise.natural(weights, {}), noise.log_normalizer(weights, {})
    beta = (1 / temperature).astype(weights.dtype)
    singles = matmul(rows, natural.T) - mean.sum(axis=1)
    # The logarithm of a maximum is the maximum of the logarithms.
    pairs = matmul(rows, jnp.maximum(natural[first], natural[second]).T)
    pairs -= jnp.maximum(mean[first], mean[second]).sum(axis=1)
    singles, pairs = beta * singles, beta * pairs + log_odds.astype(weights.dtype)
    largest = jnp.maximum(singles.max(axis=1), pairs.max(axis=1, initial=-jnp.inf))[:, None]
    denominator = jnp.exp(singles - largest).sum(axis=1) + jnp.exp(pairs - largest).sum(axis=1)
    return jnp.exp(singles - largest) / denominator[:, None]


def present(
    weights: Array, row: Array, disturbance: Array, temperature: Array, rule: HebbianRule, cooling: bool
) -> tuple[Array, Array]:
    """Return the weights after one row, and the responses to it: ΔW = ε g yᵀ + σ η, then Σ_d W_hd = C (MCA08 eq. 23).

    Noise that would make a weight negative is reflected. The odds of π are tempered while a network cools (GSN07 eq.
    20), and are not at a fixed temperature (MCA08 eq. 36 tempers only those of eq. 16).
    """
    log_odds = jnp.log(rule.odds) / (temperature if cooling else 1)
    response = responses(weights, row[None], temperature, log_odds)[0]
    moved = jnp.abs(weights + rule.rate * response[:, None] * row + rule.noise * disturbance)
    return rule.total * moved / moved.sum(axis=1, keepdims=True), response


@jax.jit
def begin(weights: Array, probes: Array | np.ndarray | None) -> Network:
    """Create a network before its first presentation; ``probes`` are the known causes, or None for its own weights."""
    probes = weights if probes is None else jnp.asarray(probes)
    return Network(
        weights,
        presented=jnp.asarray(0),
        average=jnp.zeros_like(weights),
        response=jnp.zeros_like(weights[:, 0]),
        probes=probes,
        counted=jnp.ones(len(probes), bool),
        units=_units(weights, probes),
        since=jnp.asarray(0),
    )


def _scores(weights: Array, probes: Array) -> Array:
    """Compute the log-likelihood I_h of each probe under each unit: (K, H)."""
    noise = Poisson()
    return matmul(probes, noise.natural(weights, {}).T) - noise.log_normalizer(weights, {}).sum(axis=1)


def _units(weights: Array, probes: Array) -> Array:
    """Return the unit that responds most to each probe: (K,)."""
    return jnp.argmax(_scores(weights, probes), axis=1)


def _all_differ(units: Array) -> Array:
    """Return whether all probes have different units."""
    ordered = jnp.sort(units)
    return jnp.all(ordered[1:] != ordered[:-1])


def show(
    network: Network,
    rows: Array,
    number: Array,
    key: Array,
    rule: HebbianRule,
    temperature_at: Callable[[Array], Array],
    *,
    cooling: bool,
    known: bool,
) -> Network:
    """Present the first ``number`` of some rows (n, D) in the given order."""
    n = len(rows)
    # Noise needs no double precision, in which drawing it would take as long as everything else.
    disturbances = jax.random.normal(key, (n, *network.weights.shape), jnp.float32)
    temperatures = temperature_at(network.presented + jnp.arange(n))

    def one(place: Array, network: Network) -> Network:
        row, disturbance, temperature = rows[place], disturbances[place], temperatures[place]
        weights, response = present(network.weights, row, disturbance, temperature, rule, cooling)
        has_signal = jnp.any(row > 0)  # rows of zeros change nothing
        weights, response = jnp.where(has_signal, weights, network.weights), jnp.where(has_signal, response, 0)
        presented, scores = network.presented + 1, _scores(weights, network.probes)
        units, own = jnp.argmax(scores, axis=1), jnp.take_along_axis(scores, network.units[:, None], axis=1)[:, 0]
        lost = scores.max(axis=1) - own > LOST * temperature
        changed = jnp.any(lost & network.counted) | (known & ~_all_differ(units))
        return network._replace(
            weights=weights,
            presented=presented,
            average=network.average + weights,
            response=network.response + response,
            units=jnp.where(changed, units, network.units),
            since=jnp.where(changed, presented, network.since),
        )

    return jax.lax.fori_loop(0, number, one, network)


def temperature_of(rule: HebbianRule, schedule: LinearCooling | None, epochs: Array | np.ndarray | float) -> Array:
    """Return the temperature after ``epochs`` epochs, which may be fractional."""
    if schedule is None:
        return jnp.full(jnp.shape(epochs), rule.temperature)
    return schedule.temperature(jnp.asarray(epochs, dtype=float))


@partial(jax.jit, static_argnums=(4, 5))
def epoch(
    network: Network,
    pool: Shown,
    key: Array,
    rule: HebbianRule,
    schedule: LinearCooling | None,
    known: bool,
) -> Network:
    """Show as many rows as the pool has, drawn from it at random with replacement.

    ``average`` and ``response`` of the result are means over the epoch.

    Where the causes are unknown, the network's own mean weights serve as probes. They are replaced when a unit that
    responds often has changed.
    """
    order_key, noise_key = jax.random.split(key)
    n = pool.number
    drawn = pool.places[jax.random.randint(order_key, pool.places.shape, 0, n)]
    after = stream(
        network._replace(average=jnp.zeros_like(network.average), response=jnp.zeros_like(network.response)),
        pool._replace(places=drawn),
        noise_key,
        rule,
        schedule,
        network.presented / n,
        known=known,
    )
    after = after._replace(average=after.average / n, response=after.response / n)
    if known:
        return after
    moved = after.since > network.presented
    probes = jnp.where(moved, after.average, network.probes)
    # Units that hardly respond take no part in the stopping rule.
    used = ~hardly_used(after.response, after.response.max())
    return after._replace(
        probes=probes,
        counted=jnp.where(moved, used, network.counted),
        units=jnp.where(moved, _units(after.weights, probes), after.units),
        since=jnp.where(moved, after.presented, after.since),
    )


@partial(jax.jit, static_argnums=(4,), static_argnames=("known",))
def stream(
    network: Network,
    shown: Shown,
    key: Array,
    rule: HebbianRule,
    schedule: LinearCooling | None,
    epochs: Array,
    *,
    known: bool = False,
) -> Network:
    """Show rows in the given order, as one epoch of the schedule that follows ``epochs`` earlier ones."""
    before, (rows, places, n) = network.presented, shown
    size = min(CHUNK, len(places))
    n_chunks = -(-len(places) // size)
    places = jnp.pad(places, (0, n_chunks * size - len(places))).reshape(n_chunks, size)
    keys = jax.random.split(key, n_chunks)

    def temperature_at(presented: Array) -> Array:
        return temperature_of(rule, schedule, epochs + (presented - before) / n).astype(rows.dtype)

    def chunk(number: Array, network: Network) -> Network:
        some, left = rows[places[number]], jnp.minimum(size, n - number * size)
        cooling = schedule is not None
        return show(network, some, left, keys[number], rule, temperature_at, cooling=cooling, known=known)

    return jax.lax.fori_loop(0, -(-n // size), chunk, network)


def has_learned(network: Network, n_shown: int, hold: int, schedule: LinearCooling | None) -> bool:
    """Return whether every probe has kept its unit for ``hold`` presentations, after the end of any schedule.

    An epoch has ``n_shown`` presentations.
    """
    presented, since = int(network.presented), int(network.since)
    return presented - since >= hold and (schedule is None or presented >= schedule.n_iter * n_shown)
