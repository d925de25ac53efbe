"""States of rows under a log joint: bred or searched, compared with an enumeration of all states."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from multicause.arrays import double_precision
from multicause.posteriors import NAMES, Beam, Evolved
from multicause.posteriors.evolution.log_joint_breeding import SIBLINGS, guided_children
from multicause.solvers.joint_learning import pack, unpack
from multicause.solvers.joint_model import FunctionModel
from multicause.solvers.joint_states import evaluate, first_states, next_states, probabilities_of

H, D, N = 6, 5, 7
RANDOM = np.random.RandomState(0)
COMPONENTS = RANDOM.normal(size=(H, D))
ROWS = (RANDOM.uniform(size=(N, H)) < 0.4) @ COMPONENTS + 0.3 * RANDOM.normal(size=(N, D))
MODEL = FunctionModel(
    lambda components, states, rows: (
        -2 * jnp.sum((rows[:, None] - states @ components) ** 2, axis=-1) - jnp.sum(states, axis=-1)
    )
)


def enumerated():
    """log Σ p(s, y) over all states of each row, in NumPy."""
    states = np.arange(2**H)[:, None] >> np.arange(H) & 1
    errors = np.sum((ROWS[:, None] - states @ COMPONENTS) ** 2, axis=-1)
    return logsumexp(-2 * errors - states.sum(axis=1), axis=1)


@pytest.fixture(autouse=True)
def _double():
    with double_precision():
        yield


@jax.jit
def _evidence(states, rows):
    return probabilities_of(MODEL, COMPONENTS, states, rows)[1]


@partial(jax.jit, static_argnums=0)
def _search(search, rows):
    return first_states(search, MODEL, COMPONENTS, rows, H)


@partial(jax.jit, static_argnums=0)
def _next(search, states, rows, key):
    return next_states(search, MODEL, COMPONENTS, states, rows, key)


def evidence(states):
    return np.asarray(_evidence(states, ROWS))


def search(posterior, rows=ROWS):
    return _search(posterior.log_joint_search(), rows)


@pytest.mark.parametrize("posterior", [Evolved(64), Evolved(200), Beam(H, 64)], ids=repr)
def test_all_states_give_the_exact_evidence(posterior):
    np.testing.assert_allclose(evidence(search(posterior)), enumerated(), rtol=1e-12)


@pytest.mark.parametrize("posterior", [Evolved(8), Beam(5, 4)], ids=repr)
def test_some_states_give_a_lower_bound_and_do_not_depend_on_other_rows(posterior):
    states = search(posterior)
    assert states.shape == (N, posterior.log_joint_search().n_states(H), H)
    assert (evidence(states) <= enumerated() + 1e-12).all()
    # The best states hold most of the probability.
    assert (evidence(states) > enumerated() - 0.5).all()
    order = np.random.RandomState(1).permutation(N)
    np.testing.assert_array_equal(search(posterior, ROWS[order]), np.asarray(states)[order])


def test_breeding_never_loses_a_better_state(seed):
    posterior = Evolved(6, n_children=4, n_generations=1)
    states, bounds = search(posterior), []
    for number in range(12):
        bounds.append(evidence(states))
        states = _next(posterior.log_joint_search(), states, ROWS, jax.random.key(100 * seed + number))
    assert (np.diff(bounds, axis=0) >= -1e-12).all()
    assert bounds[-1].sum() > bounds[0].sum()


def test_guided_children_switch_on_what_explains_the_residual():
    """With as many guided children as one parent has, those of the empty state are the steepest single causes."""
    empty, keys = np.zeros((N, 1, H), np.int8), jax.random.split(jax.random.key(0), N)
    steep = FunctionModel(lambda components, states, rows: 1e3 * MODEL.log_joint(components, states, rows))

    @jax.jit
    def children_of(states, rows, keys):
        return guided_children(
            lambda states: evaluate(steep, COMPONENTS, states, rows), states, keys, SIBLINGS, jnp.float64
        )

    children = np.asarray(children_of(empty, ROWS, keys))
    assert (children.sum(axis=2) == 1).all()
    expected = np.sort(np.argsort(-(4 * ROWS @ COMPONENTS.T - 1), axis=1)[:, :SIBLINGS])
    np.testing.assert_array_equal(np.sort(children.argmax(axis=2)), expected)


def test_states_are_packed_eight_to_a_byte():
    for size in (1, 8, 13):
        states = RANDOM.randint(0, 2, (4, 3, size)).astype(np.int8)
        assert pack(states).shape == (4, 3, -(-size // 8))
        np.testing.assert_array_equal(jax.jit(unpack, static_argnums=1)(pack(states), size), states)


def test_posteriors_that_need_more_than_a_log_joint_offer_no_search():
    assert [name for name, kind in NAMES.items() if kind().log_joint_search() is not None] == ["beam", "evolved"]
