"""Mixed sources, which tests of energy models and their solvers share."""

import numpy as np


def mixture(n=4000, dimensions=4, seed=0):
    """Return a mixture of independent sources with an offset, the mixing matrix and the sources."""
    random = np.random.RandomState(seed)
    A = random.normal(size=(dimensions, dimensions)) + np.eye(dimensions)
    S = random.laplace(size=(n, dimensions))
    return S @ A.T + 3.0, A, S
