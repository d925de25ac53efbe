"""Children of states, and which states of a row are equal."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.posteriors.evolution.breeding import children_of, is_first


def test_equal_states_are_found_and_children_are_states():
    random = np.random.RandomState(0)
    states = jnp.asarray(random.randint(0, 3, (5, 20, 3)), jnp.int8)
    expected = [[not any((row[k] == row[j]).all() for j in range(k)) for k in range(20)] for row in np.asarray(states)]
    np.testing.assert_array_equal(is_first(states), expected)
    children = np.asarray(children_of(jax.random.PRNGKey(0), states, 16, 3))
    assert children.shape == (5, 16, 3)
    assert children.min() >= 0
    assert children.max() <= 2
    single = jnp.zeros((1, 1, 4), jnp.int8)
    changed = np.asarray(children_of(jax.random.PRNGKey(0), single, 8, 2))
    assert (changed.sum(axis=-1) == 1).all()
