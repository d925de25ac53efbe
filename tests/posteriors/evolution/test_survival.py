"""Survivors of a generation, beside a sort of all states."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import double_precision
from multicause.posteriors.evolution.survival import survivors


def test_survivors_are_the_best():
    random = np.random.RandomState(0)
    kept, new = random.normal(size=(7, 50)), random.normal(size=(5, 50))
    kept[3:, 10] = -np.inf
    with double_precision():
        scores, places = survivors(jnp.asarray(kept), jnp.asarray(new))
    both = np.concatenate([kept, new])
    np.testing.assert_allclose(np.sort(scores, axis=0), np.sort(both, axis=0)[-7:], rtol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(both, np.asarray(places), axis=0), scores, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(scores)[0], np.asarray(scores).max(axis=0))


def test_equal_scores_stay_different_states():
    """Also zero, the score of the best state: earlier states survive, each once."""
    kept, new = np.array([[0.0], [0.0], [0.0], [-1.0]]), np.array([[0.0], [-0.5], [-np.inf]])
    with double_precision():
        scores, places = survivors(jnp.asarray(kept), jnp.asarray(new))
    np.testing.assert_array_equal(scores[:, 0], 0)
    np.testing.assert_array_equal(np.sort(places[:, 0]), [0, 1, 2, 4])


def test_places_without_a_state_stay_as_they_are():
    kept, new = np.array([[0.0], [-np.inf], [-np.inf]]), np.full((2, 1), -np.inf)
    with double_precision():
        scores, places = survivors(jnp.asarray(kept), jnp.asarray(new))
    np.testing.assert_array_equal(scores[:, 0], [0, -np.inf, -np.inf])
    np.testing.assert_array_equal(places[:, 0], [0, 1, 2])
