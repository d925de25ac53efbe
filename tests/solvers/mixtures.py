"""Mixed sources, which tests of energy models and their solvers share."""

import numpy as np


def mixture(n_rows, seed=0):
    """Return independent sources of four dimensions that are mixed at random, with an offset."""
    random = np.random.RandomState(seed)
    A = random.normal(size=(4, 4)) + np.eye(4)
    return random.laplace(size=(n_rows, 4)) @ A.T + 3.0
