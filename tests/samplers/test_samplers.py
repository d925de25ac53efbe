"""Samplers against closed-form moments of an asymmetric target, and for reversibility.

The target has z₁ = log of a Gamma variable of shape a, and z₂ Gaussian around c·z₁: skewed, correlated and of unequal
scales, so that no sign or factor can be wrong unnoticed.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import polygamma

from multicause.arrays import double_precision
from multicause.energies import Energy, Logistic, Student
from multicause.samplers import (
    Chain,
    CorrectedLangevin,
    Hamiltonian,
    Langevin,
    MarkovChain,
    Metropolis,
    annealed,
    run_chain,
)
from multicause.samplers.base import State, draw_steps, folded
from multicause.samplers.hamiltonian import leapfrog
from multicause.solvers.contrastive_divergence import Method, first_state, gradients
from tests.energies.test_energies import INITIAL, plane


class Independent(NamedTuple):
    """A state with a position alone."""

    position: jax.Array


class Rate(NamedTuple):
    """An info with an acceptance rate alone."""

    acceptance_rate: jax.Array


class Walk(MarkovChain):
    """A user's kernel with records of its own: random steps that are accepted or rejected."""

    def __init__(self, *, acceptance=0.5, step_size=1.0):
        self.acceptance = acceptance
        self.step_size = step_size

    def build(self, target, step_size):
        def kernel(key, state):
            first, second = jax.random.split(key)
            old = state.position
            new = old + step_size * jax.random.normal(first, old.shape, old.dtype)
            rate = jnp.exp(jnp.minimum(target(old)[0] - target(new)[0], 0))
            accept = jax.random.uniform(second, rate.shape, old.dtype) < rate
            return Independent(jnp.where(accept[:, None], new, old)), Rate(rate)

        return Chain(Independent, kernel)


A, C, S = 1.5, 0.8, 0.6
CHAINS = 8000
# Standard errors beyond which a mean is wrong: with about twenty means a test fails by chance once in 100 000 runs.
FAR = 5.0
CORRECTED = [Hamiltonian(5, step_size=0.35), CorrectedLangevin(step_size=0.8), Metropolis(step_size=1.0)]
ALL = [*CORRECTED, Langevin(step_size=0.2)]
VALUE = jax.jit(Energy.value, static_argnums=0)
FIRST_STATE = jax.jit(first_state, static_argnums=(0, 2))


def target(Z):
    def energy(Z):
        return jnp.exp(Z[:, 0]) - A * Z[:, 0] + (Z[:, 1] - C * Z[:, 0]) ** 2 / (2 * S**2)

    value, back = jax.vjp(energy, Z)
    return value, back(jnp.ones_like(value))[0]


def draws(seed, n=CHAINS):
    random = np.random.RandomState(seed)
    first = np.log(random.gamma(A, size=n))
    return np.column_stack([first, C * first + S * random.normal(size=n)])


@partial(jax.jit, static_argnums=(0, 4, 5))
def _run(sampler, key, Z, step_size, n_steps, target):
    chain = sampler.build(target, step_size)
    state, acceptance, bad = run_chain(chain, key, chain.init(Z), n_steps)
    return state.position, acceptance, bad


def run(sampler, seed, Z, n_steps, step_size=None, target=target):
    """Ends of chains, mean acceptance and number of rejected proposals, in double precision."""
    with double_precision():
        size = jnp.asarray(sampler.step_size if step_size is None else step_size, Z.dtype)
        end, acceptance, bad = _run(sampler, jax.random.key(seed), jnp.asarray(Z), size, n_steps, target)
        return np.asarray(end), float(acceptance), int(bad)


def moments(Z):
    """Five closed-form moments of the target, and how many standard errors away those of Z are."""
    mean, variance = float(polygamma(0, A)), float(polygamma(1, A))
    one, two = Z[:, 0] - mean, Z[:, 1] - C * mean
    excess = np.column_stack(
        [
            one,
            two,
            one**2 - variance,
            two**2 - (S**2 + C**2 * variance),
            one * two - C * variance,
            one**3 - float(polygamma(2, A)),
        ]
    )
    return excess.mean(axis=0) / (excess.std(axis=0) / np.sqrt(len(Z)))


def test_the_closed_form_is_that_of_the_target(seed):
    assert np.abs(moments(draws(seed))).max() < FAR


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_chains_from_elsewhere_reach_the_targets_moments(sampler, seed):
    """Uncorrected Langevin has a bias of order ε², below the error of so many chains for this step size."""
    n_steps = 400 if isinstance(sampler, Langevin) else 60
    Z, acceptance, bad = run(sampler, seed, np.random.RandomState(seed).normal(1.0, 0.3, (CHAINS, 2)), n_steps)
    assert np.abs(moments(Z)).max() < FAR
    assert 0.3 < acceptance < 1
    assert bad == 0


@pytest.mark.parametrize("sampler", [*CORRECTED, Walk()], ids=lambda s: type(s).__name__)
def test_detailed_balance(sampler, seed):
    """From equilibrium, (z, z′) and (z′, z) have the same distribution: f(z)g(z′) − g(z)f(z′) has mean zero."""
    assert _asymmetry(sampler, sampler.step_size, seed) < FAR


def test_the_test_of_detailed_balance_notices_a_chain_without_it():
    assert _asymmetry(Langevin(), 0.8, 0) > 2 * FAR


def _asymmetry(sampler, step_size, seed):
    before = np.concatenate([draws(seed + 1000 * k) for k in range(5)])
    after = run(sampler, seed, before, 1, step_size)[0]
    functions = [lambda Z: Z[:, 0], lambda Z: Z[:, 1], lambda Z: Z[:, 0] ** 2, lambda Z: np.tanh(Z[:, 1] - 1)]
    pairs = [(f, g) for i, f in enumerate(functions) for g in functions[:i]]
    differences = [f(before) * g(after) - g(before) * f(after) for f, g in pairs]
    invariance = [f(after) - f(before) for f in functions]
    return max(abs(d.mean()) / (d.std() / np.sqrt(len(d))) for d in differences + invariance)


def test_a_trajectory_can_be_reversed_and_keeps_volume(seed):
    random = np.random.RandomState(seed)
    with double_precision():
        Z, momentum = random.normal(size=(6, 2)), random.normal(size=(6, 2))

        @jax.jit
        def flow(Z, momentum):
            state, momentum = leapfrog(State(Z, *target(Z)), momentum, jnp.asarray(0.2), target, 7)
            return state.position, momentum

        there = [np.asarray(part) for part in flow(Z, momentum)]
        back = flow(there[0], -there[1])
        np.testing.assert_allclose(back[0], Z, atol=1e-12)
        np.testing.assert_allclose(-np.asarray(back[1]), momentum, atol=1e-12)
        assert np.abs(there[0] - Z).max() > 0.1

        def joined(both):
            return jnp.concatenate([part[0] for part in flow(both[None, :2], both[None, 2:])])

        jacobian = jax.jit(jax.jacobian(joined))(np.concatenate([Z[0], momentum[0]]))
        np.testing.assert_allclose(np.linalg.det(jacobian), 1, rtol=1e-10)
        # The error of the conserved energy is of second order in the step size.
        errors, ends = [], jax.jit(leapfrog, static_argnums=(3, 4))
        energy, gradient = jax.jit(target)(Z)
        for size in (0.1, 0.05):
            state, after = ends(State(Z, energy, gradient), momentum, size, target, int(2 / size))
            after, before = (np.sum(np.asarray(each) ** 2, axis=1) / 2 for each in (after, momentum))
            total = np.asarray(state.energy) + after - np.asarray(energy) - before
            errors.append(float(np.abs(total).mean()))
        assert 3 < errors[0] / errors[1] < 5


@pytest.mark.parametrize(
    "sampler", [Hamiltonian(5), CorrectedLangevin(), Langevin(), Metropolis()], ids=lambda s: type(s).__name__
)
def test_the_step_size_finds_its_acceptance(sampler):
    Z, step_size, accepted = draws(0, 500), 0.1, []
    for number in range(120):
        Z, acceptance, _ = run(sampler, number, Z, 1, step_size)
        with double_precision():
            step_size = float(sampler.adapted(np.float32(step_size), np.float32(acceptance)))
        accepted.append(acceptance)
    assert np.mean(accepted[-30:]) == pytest.approx(sampler.acceptance, abs=0.03)


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_proposals_without_a_finite_energy_are_rejected_and_counted(sampler):
    """An energy that is not a number beyond a wall: no chain passes it."""

    def walled(Z):
        value, gradient = target(Z)
        outside = Z[:, 0] > 0.5
        return jnp.where(outside, jnp.nan, value), jnp.where(outside[:, None], jnp.nan, gradient)

    start = draws(0, 400)
    start = start[start[:, 0] < 0.5]
    Z, acceptance, bad = run(sampler, 0, start, 10, target=walled)
    assert bad > 0
    assert np.isfinite(Z).all()
    assert Z[:, 0].max() <= 0.5
    assert np.isfinite(acceptance)
    assert (start != Z).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_a_chain_leaves_a_place_without_an_energy(sampler):
    """And its acceptance is a number, which the step size can be adapted to."""

    def walled(Z):
        value, gradient = target(Z)
        return jnp.where(Z[:, 0] > 0.5, jnp.nan, value), gradient

    start = np.tile([[0.55, 0.0]], (400, 1))
    Z, acceptance, _ = run(sampler, 0, start, 10, target=walled)
    assert (Z[:, 0] <= 0.5).mean() > 0.9
    assert 0 < acceptance < 1


def test_the_partition_function_of_heavy_tails_is_not_missed(seed):
    """Three experts in two dimensions, against quadrature in polar coordinates, to four standard errors.

    A false alarm in some thousand runs; from logistic tails, the estimate was six standard errors below.
    """
    with double_precision():
        energy = Energy(Student(exponent=0.5))
        W = np.array([[1.5, 0.2], [-0.4, 1.2], [0.7, -0.9]])
        parameters = INITIAL(energy, W, (), 1.0, jax.random.key(0))
        base = annealed.base_for(energy, parameters, 1.0)
        settings = {"n_more": 0, "key": jax.random.key(seed), "memory": 2**20}
        chains = annealed.follow_path(energy, parameters, base, 500, 300, **settings)
    found = annealed.log_partition(chains, base)
    angles, log_radii = np.linspace(0, 2 * np.pi, 2000, endpoint=False), np.linspace(-15, 150, 3301)
    along = (W @ np.stack([np.cos(angles), np.sin(angles)])) ** 2
    rings = [np.exp(2 * r - 0.5 * np.log1p(np.exp(2 * r) * along).sum(axis=0)).mean() for r in log_radii]
    expected = np.log(2 * np.pi * np.sum(rings) * (log_radii[1] - log_radii[0]))
    assert found.standard_error < 0.2
    assert found.value == pytest.approx(expected, abs=4 * found.standard_error)


def test_a_chain_with_a_key_of_its_own_depends_on_no_other():
    sampler = Hamiltonian(3)
    with double_precision():
        keys, Z = jax.jit(folded)(jax.random.split(jax.random.key(0), 5), jnp.asarray(7)), draws(0, 5)
        together = _run(sampler, keys, Z, jnp.asarray(0.3), 4, target)[0]
        apart = _run(sampler, keys[2:4], Z[2:4], jnp.asarray(0.3), 4, target)[0]
    np.testing.assert_allclose(together[2:4], apart, rtol=1e-12)


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_single_precision_stays_single(sampler):
    end = run(sampler, 0, draws(0, 20).astype(np.float32), 2)[0]
    assert end.dtype == jnp.float32


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_the_gradient_is_unbiased_in_the_limit_of_many_steps(sampler, seed):
    """Three logistic experts in two dimensions: ⟨∂E/∂W⟩ of long chains against quadrature."""
    with double_precision():
        energy = Energy(Logistic())
        W = np.array([[1.5, 0.2], [-0.4, 1.2], [0.7, 0.9]])
        parameters = INITIAL(energy, W, (), 1.0, jax.random.key(0))
        places, areas = plane(reach=25, n=801)
        density = np.exp(-np.asarray(VALUE(energy, parameters, places))) * areas
        slopes = np.tanh(places @ W.T / 2)
        expected = (density[:, None] * slopes).T @ places / density.sum()

        Z = np.random.RandomState(seed).normal(0.3, 1.0, (4000, 2))
        steps = 300 if isinstance(sampler, Langevin) else 60
        method = Method(energy, sampler, steps, False)
        updates = FIRST_STATE(method, parameters, len(Z))
        shares = np.full(len(Z), 1 / len(Z))
        found = jax.jit(gradients, static_argnums=0)(method, updates, Z, shares, jax.random.key(seed))[0].filters
        of_data = np.tanh(Z @ W.T / 2).T @ Z / len(Z)
        spread = np.sqrt((density[:, None] * slopes**2).T @ places**2 / density.sum() - expected**2)
    errors = (of_data - np.asarray(found) - expected) / (spread / np.sqrt(4000))
    assert np.abs(errors).max() < FAR


def test_heavy_tails_stay_in_range_for_models_in_single_precision():
    """Draws with exponent 0.55, the heaviest, exceed 1e38 now and then."""
    with double_precision():
        energy = Energy(Student(exponent=0.5))
        parameters = INITIAL(energy, np.eye(2, dtype=np.float32), (), 1.0, jax.random.key(0))
        base = annealed.base_for(energy, parameters, 1.0)
        settings = {"n_more": 0, "key": jax.random.key(0), "memory": 2**24}
        chains = annealed.follow_path(energy, parameters, base, 4000, 5, **settings)
    assert np.isfinite(chains.log_weights).all()
    assert chains.positions.dtype == np.float32


@pytest.mark.parametrize("sampler", [Hamiltonian(3), Langevin()], ids=lambda s: type(s).__name__)
def test_numbers_drawn_before_a_step_are_those_that_it_draws_itself(sampler):
    with double_precision():
        keys, Z = jax.random.split(jax.random.key(0), 3), draws(0, 5)
        drawn = jax.jit(draw_steps, static_argnums=(1, 2))(keys, Z.shape, Z.dtype)

        @jax.jit
        def step(key, Z, draws=None):
            chain = sampler.build(target, jnp.asarray(0.3))
            return run_chain(chain, key, chain.init(Z), 1, draws)

        for number, key in enumerate(keys):
            own = jax.tree.map(lambda each, number=number: np.asarray(each)[number], drawn)
            jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), step(key, Z, own), step(key, Z))
