"""Small models of several kinds, which tests of preselected causes share."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.datasets import make_bars

#: Numbers of causes and features.
H, D = 5, 9
CASES = {
    "maximal": (MaximalCauses, "max", "gaussian", {}),
    "maximal-poisson": (MaximalCauses, "max", "poisson", {}),
    "linear": (LinearCauses, "sum", "gaussian", {"combination": "sum"}),
    "linear-poisson": (LinearCauses, "sum", "poisson", {"combination": "sum"}),
    "nonnegative": (NonnegativeCauses, "sum", "gaussian", {"combination": "sum"}),
}


@pytest.fixture(params=CASES)
def case(request, seed):
    """A model after two iterations, by the given posterior, its data and its words in the oracle."""
    estimator, combination, noise, settings = CASES[request.param]
    X = make_bars(40, size=3, value=6.0, noise=noise, noise_scale=1.0, random_state=seed, **settings).data
    start = np.abs(np.random.RandomState(seed).normal(3, 2, (H, D)))

    def fit(posterior, **changes):
        words = {"noise": noise, "posterior": posterior, "annealing": None, "max_iter": 2, "init": start} | changes
        return estimator(H, random_state=0, **words).fit(X)

    return fit, X, combination, noise
