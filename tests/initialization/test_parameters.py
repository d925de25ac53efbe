"""Initial parameters, and data from which none can be drawn."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nonnegative_models_need_a_positive_value():
    X = -np.abs(np.random.RandomState(0).normal(1, 1, (50, 5)))
    for estimator in (NonnegativeCauses, MaximalCauses):
        with pytest.raises(ValueError, match=r"no positive value.*LinearCauses"):
            estimator(3).fit(X)
    LinearCauses(3, max_iter=3).fit(X)
