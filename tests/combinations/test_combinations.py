"""Each combination alone, compared with loops over states and causes in NumPy."""

import jax
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.combinations import Maximum, MaximumMagnitude, NoisyOr, Sum
from multicause.records import Moments
from multicause.states.state_list import all_states, sparse_states

H, D = 4, 5
RANDOM = np.random.RandomState(0)
POSITIVE = RANDOM.uniform(0.1, 0.9, (H, D))
SIGNED = RANDOM.normal(size=(H, D))
TREES = [all_states(H), sparse_states(H, 2)]
COLD = np.ones(())


def clipped_sum(active):
    return np.minimum(active.sum(axis=0), 1.0)


def largest(active):
    return active.max(axis=0, initial=0)


def largest_magnitude(active):
    return active[np.abs(active).argmax(axis=0), np.arange(D)] if len(active) else np.zeros(D)


def noisy_or(active):
    return 1 - np.prod(1 - active, axis=0)


#: Combination, components, and the mean of the components of active causes.
RULES = [
    (Sum(), SIGNED, lambda active: active.sum(axis=0)),
    (Sum(nonnegative=True), POSITIVE, lambda active: active.sum(axis=0)),
    (Sum(nonnegative=True, upper=1.0), POSITIVE, clipped_sum),
    (Maximum(least_temperature=1.0), POSITIVE, largest),
    (MaximumMagnitude(least_temperature=1.0), SIGNED, largest_magnitude),
    (NoisyOr(), POSITIVE, noisy_or),
]
OF_RULES = pytest.mark.parametrize(("rule", "components", "mean_of"), RULES, ids=[repr(rule[0]) for rule in RULES])


@pytest.fixture(autouse=True)
def _double():
    with double_precision():
        yield


def means_of(mean_of, components, states):
    return np.array([mean_of(components[state > 0]) for state in states])


@OF_RULES
@pytest.mark.parametrize("tree", TREES, ids=["all", "sparse"])
def test_means_of_all_states(rule, components, mean_of, tree):
    expected = means_of(mean_of, components, tree.states())
    causes = tree.states().astype(float)
    found = jax.jit(lambda W, causes: (rule.combine(W, tree), rule.mean(W, causes)))(components, causes)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    np.testing.assert_allclose(found[1], expected, atol=1e-12)


@OF_RULES
def test_means_relative_to_an_origin(rule, components, mean_of):
    tree, origin = TREES[1], np.linspace(-0.2, 0.3, D)
    found = jax.jit(lambda W, origin: rule.relative_means(W, tree, origin))(components, origin)
    np.testing.assert_allclose(found, means_of(mean_of, components, tree.states()) - origin, atol=1e-12)


@pytest.mark.parametrize(("rule", "components", "mean_of"), RULES[:-1], ids=[repr(rule[0]) for rule in RULES[:-1]])
@pytest.mark.parametrize("tree", TREES, ids=["all", "sparse"])
def test_credit_is_the_derivative_of_the_mean(rule, components, mean_of, tree):
    """Σ_s ∂w̄_d(s)/∂W_hd v_d(s) by finite differences; a noisy-or has another credit, which is tested below."""
    states, step = tree.states(), 1e-6
    values = RANDOM.normal(size=(len(states), D))
    expected = np.zeros((H, D))
    for h in range(H):
        up, down = components.copy(), components.copy()
        up[h] += step
        down[h] -= step
        slope = (means_of(mean_of, up, states) - means_of(mean_of, down, states)) / (2 * step)
        expected[h] = np.sum(slope * values, axis=0)

    @jax.jit
    def both(W, states, values, temperature):
        return rule.pull(W, tree, values, temperature), rule.pull_states(W, states, values, temperature)

    pulled, again = both(components, states.astype(float), values, COLD)
    np.testing.assert_allclose(pulled, expected, atol=1e-8)
    np.testing.assert_allclose(again, expected, atol=1e-8)


@pytest.mark.parametrize("tree", [all_states(7), sparse_states(7, 7), sparse_states(7, 4)], ids=["all", "7", "4"])
@pytest.mark.parametrize("credit", ["power", "sigmoid"])
def test_shares_of_long_lists_are_powers_and_exponentials(credit, tree):
    """Cause h has the share W_h^(ρ−1) / (Σ W^ρ)^((ρ−1)/ρ) of a state, or exp(W_h λ/(T−1)) / Σ exp(W λ/(T−1))."""
    components, temperature = RANDOM.uniform(0.1, 2, (7, D)), 1.3
    states, values = tree.states().astype(float), RANDOM.normal(size=(tree.n_states, D))
    rho = temperature / (temperature - 1)
    own = components ** (rho - 1) if credit == "power" else np.exp(0.2 / (temperature - 1) * components)
    totals = states @ (components**rho if credit == "power" else own)
    totals[0] = 1  # the empty state has no causes that could share it
    shared = values / (totals ** ((rho - 1) / rho) if credit == "power" else totals)
    rule = Maximum(credit=credit)
    pull = jax.jit(lambda W, values, temperature: rule.pull(W, tree, values, temperature))
    pulled = pull(components, values, np.asarray(temperature))
    np.testing.assert_allclose(pulled, own * (states.T @ shared), atol=1e-9)


def test_causes_of_a_noisy_or_have_full_credit():
    states = TREES[0].states()
    values = RANDOM.normal(size=(len(states), D))
    pulled = jax.jit(NoisyOr().pull_states)(POSITIVE, states.astype(float), values, COLD)
    np.testing.assert_allclose(pulled, states.T @ values, atol=1e-12)


@OF_RULES
def test_overlap_is_the_number_of_causes_that_share_a_mean(rule, components, mean_of):
    states = TREES[0].states()
    alone = np.minimum(states.sum(axis=1, keepdims=True), 1)
    together = states.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(rule.overlap(states), alone if isinstance(rule, Maximum) else together)


@OF_RULES
def test_initial_components_lie_within_the_bounds(rule, components, mean_of):
    moments = Moments(np.full(D, 0.4), 0.1, 0.1, 1e-16)
    found = rule.initialize(np.random.RandomState(0), 200, moments)
    lower, upper = rule.bounds
    assert found.shape == (200, D)
    assert (found >= lower).all()
    assert (found <= upper).all()
    assert found.std() > 0.05


def test_bounds_follow_from_the_means_that_a_noise_allows():
    assert Sum().within((0.0, 1.0)) == Sum(nonnegative=True, upper=1.0)
    assert Sum().within((-np.inf, np.inf)) == Sum()
    assert Maximum().within((0.0, 1.0)).bounds == (0.0, 1.0)
    assert MaximumMagnitude().within((0.0, 1.0)) == MaximumMagnitude()
    np.testing.assert_array_equal(Sum(nonnegative=True, upper=1.0).project(np.array([-1.0, 0.5, 2.0])), [0, 0.5, 1])
    np.testing.assert_allclose(Maximum(upper=1.0).reflect(np.array([-0.2, 1.3])), [0.2, 0.7])


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Sum(upper=0.0), "upper of Sum must be a positive number, or None; got 0.0"),
        (Maximum(credit="hard"), "Unknown credit 'hard' of Maximum. Known"),
        (Maximum(least_temperature=0.5), "least_temperature of Maximum must be at least 1; got 0.5"),
        (NoisyOr(upper=1.0), "upper of NoisyOr must be a probability below 1; got 1.0"),
    ],
)
def test_invalid_settings_are_errors(rule, message):
    with pytest.raises(ValueError, match=message):
        rule.validate()
