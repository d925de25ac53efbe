"""Lists of states: their order, and means and credit of all states against loops over states."""

from functools import partial
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.combinations import Maximum, Sum
from multicause.states.state_list import all_states, single_causes, sparse_states
from tests.oracles import enumeration as oracle

# The maximum whose credit has no winner but the largest.
HARD = Maximum(least_temperature=1.0)
PAIRS, TRIPLES = sparse_states(4, 2), sparse_states(4, 3)


@partial(jax.jit, static_argnums=(0, 2))
def combine(part, W, tree):
    return part.combine(W, tree)


@partial(jax.jit, static_argnums=(0, 2))
def pull(part, W, tree, values, temperature):
    return part.pull(W, tree, values, jnp.asarray(temperature))


def test_all_states_are_the_binary_numbers():
    np.testing.assert_array_equal(all_states(4).states(), oracle.all_states(4))


def test_states_of_a_truncated_tree():
    states = PAIRS.states()
    assert len(states) == PAIRS.n_states == 1 + 4 + 6
    assert len({tuple(s) for s in states}) == len(states)
    assert states.sum(axis=1).max() == 2
    numbers = states @ 2 ** np.arange(4)
    assert numbers.tolist() == [0, 1, 2, 4, 8, 3, 5, 6, 9, 10, 12]


@pytest.mark.parametrize(
    "tree", [all_states(4), PAIRS, TRIPLES, sparse_states(4, 4)], ids=["all", "pairs", "triples", "four"]
)
@pytest.mark.parametrize("combination", ["max", "sum"])
def test_means_of_all_states(tree, combination, seed):
    W = np.random.RandomState(seed).uniform(0, 5, (4, 6))
    part = Maximum() if combination == "max" else Sum()
    with double_precision():
        means = np.asarray(combine(part, W, tree))
        direct = np.asarray(jax.jit(part.mean)(W, tree.states().astype(float)))
    expected = [oracle.mean(s, W, combination) for s in tree.states()]
    np.testing.assert_allclose(means, expected)
    np.testing.assert_allclose(direct, expected)


@pytest.mark.parametrize(
    "tree", [all_states(4), PAIRS, TRIPLES, sparse_states(4, 4)], ids=["all", "pairs", "triples", "four"]
)
@pytest.mark.parametrize("temperature", [1.0, 1.05, 3.0])
def test_credit_equals_the_papers_formula(tree, temperature, seed):
    random = np.random.RandomState(seed)
    W, values = random.uniform(0.1, 5, (4, 6)), random.normal(size=(tree.n_states, 6))
    with double_precision():
        pulled = pull(HARD, W, tree, values, temperature)
    expected = sum(oracle.credit(s, W, temperature) * v for s, v in zip(tree.states(), values, strict=True))
    np.testing.assert_allclose(pulled, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("temperature", [1.2, 2.0, 10.0])
def test_credit_is_the_derivative_of_the_norm(temperature, seed):
    """MCA08 eq. 7–8: A^ρ = ∂w̄^ρ/∂W, here by central differences of the ρ-norm itself."""
    W = np.random.RandomState(seed).uniform(0.5, 3, (3, 4))
    tree, rho, step = all_states(3), temperature / (temperature - 1), 1e-6

    def total(W):
        norms = [((s[:, None] * W) ** rho).sum(axis=0) ** (1 / rho) for s in tree.states()]
        return np.sum(weights * np.array(norms))

    weights = np.random.RandomState(seed + 1).normal(size=(tree.n_states, 4))
    with double_precision():
        pulled = np.asarray(pull(HARD, W, tree, weights, temperature))
    for h, d in np.ndindex(W.shape):
        shift = np.zeros_like(W)
        shift[h, d] = step
        assert pulled[h, d] == pytest.approx((total(W + shift) - total(W - shift)) / (2 * step), rel=1e-6, abs=1e-8)


def test_ties_share_their_credit_equally():
    W = np.array([[2.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    tree = all_states(3)
    values = np.zeros((8, 2))
    values[7] = 6.0  # only the state with all three causes
    with double_precision():
        pulled = pull(HARD, W, tree, values, 1.0)
    np.testing.assert_allclose(pulled, [[2, 3], [2, 0], [2, 3]], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_credit_has_no_nan_at_extreme_weights(dtype):
    W = np.array([[0.0, 1e-30, 1e30], [0.0, 1e30, 1e-30], [0.0, 0.0, 5.0]], dtype=dtype)
    tree = all_states(3)
    for temperature in (1.0, 1.0 + 1e-6, 1.05, 50.0):
        for credit, least in product(("power", "sigmoid"), (1.0, 1.02)):
            with double_precision():
                values = np.ones((8, 3), dtype=dtype)
                pulled = pull(Maximum(credit=credit, least_temperature=least), W, tree, values, temperature)
            assert np.isfinite(pulled).all()
            assert (np.asarray(pulled) >= 0).all()


def test_sigmoid_credit_is_the_papers_for_two_causes(seed):
    """MCA08 eq. 35 with λ = 0.2."""
    W, T = np.random.RandomState(seed).uniform(0, 5, (2, 3)), 3.0
    values = np.zeros((4, 3))
    values[3] = 1.0
    with double_precision():
        pulled = pull(Maximum(credit="sigmoid"), W, all_states(2), values, T)
    expected = 1 / (1 + np.exp(-0.2 / (T - 1) * (W[0] - W[1])))
    np.testing.assert_allclose(pulled, [expected, 1 - expected], rtol=1e-10)


def test_maximum_and_sum_agree_where_one_cause_is_active(seed):
    W = np.random.RandomState(seed).uniform(0, 5, (4, 6))
    with double_precision():
        values = np.random.RandomState(seed).normal(size=(5, 6))
        for compare in (
            lambda part: combine(part, W, single_causes(4)),
            lambda part: pull(part, W, single_causes(4), values, 1.0),
        ):
            np.testing.assert_allclose(compare(Maximum()), compare(Sum()), rtol=1e-12)


def test_least_temperature_keeps_the_credit_of_neighbours_smooth():
    """At ρ = 51, weights one percent apart share their credit, and weights ten percent apart do not."""
    W = np.array([[10.0, 10.0], [9.9, 9.0]])
    values = np.zeros((4, 2))
    values[3] = 1.0
    with double_precision():
        pulled = np.asarray(pull(Maximum(), W, all_states(2), values, 1.0))
    np.testing.assert_allclose(pulled, oracle.credit(np.array([1, 1]), W, 1.02), rtol=1e-9)
    assert 0.3 < pulled[1, 0] < 0.5
    assert pulled[1, 1] < 0.01


def test_all_pairs_of_candidates_appear_once():
    states = sparse_states(6, 3).states()
    expected = {c for k in range(4) for c in combinations(range(6), k)}
    assert {tuple(np.flatnonzero(s)) for s in states} == expected
    assert len(states) == len(expected)
    assert (np.diff(states.sum(axis=1)) >= 0).all()
