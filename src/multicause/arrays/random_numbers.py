"""Random numbers of JAX and NumPy that follow from scikit-learn's ``random_state``."""

import jax
import numpy as np

from multicause.arrays.precision import Array


def key_from(random_state: np.random.RandomState) -> Array:
    """Draw the JAX key of a fit or a sample from scikit-learn's ``random_state``."""
    return jax.random.key(int(random_state.randint(np.iinfo(np.int32).max)))


def generator(key: Array, number: int) -> np.random.Generator:
    """Return a NumPy generator seeded by a key and a number, such as that of an iteration."""
    return np.random.default_rng(np.asarray(jax.random.key_data(jax.random.fold_in(key, number))))
