"""The quality of an approximation: which references it can be compared with."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.datasets import make_bars
from multicause.metrics import approximation_quality
from multicause.posteriors import Preselected

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_quality_of_too_many_causes_names_the_way_out():
    X = make_bars(60, noise="gaussian", random_state=0).data
    model = LinearCauses(20, annealing=None, max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"2\^20 states.*reference=Preselected"):
        approximation_quality(model, X)
    assert approximation_quality(model, X, reference=Preselected(12, 6)).shape == (60,)


def test_a_poorer_reference_of_quality_is_refused():
    bars = make_bars(50, size=3, noise="gaussian", random_state=0)
    model = MaximalCauses(6, posterior=Preselected(4, 2), init=bars.causes, annealing=None, max_iter=2).fit(bars.data)
    with pytest.raises(ValueError, match="finds less evidence"):
        approximation_quality(model, bars.data, reference=Preselected(2, 1))
    np.testing.assert_array_equal(
        approximation_quality(model, bars.data, reference="exact"), approximation_quality(model, bars.data)
    )
