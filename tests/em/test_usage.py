"""Dead causes, and components that are hardly used."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.em.usage import hardly_used, has_died
from multicause.records import Parameters

DATA = SimpleNamespace(n_weighted=10)


def test_use_is_compared_with_what_is_usual():
    use = np.array([1.0, 0.6, 10.0, 8.4])  # mean 5
    assert hardly_used(use, use.mean()).tolist() == [False, False, False, False]
    assert hardly_used(use, use.max()).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("components", "copies"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], True),
        ([[1.0, 2.0], [1.0, 2.0 + 1e-5]], True),
        ([[1.0, 2.0], [1.0, 2.1]], False),
        ([[1e6, 2e6], [1e6, 2e6 + 1]], True),  # relative to the largest weight
        ([[1.0, 2.0]], False),
    ],
)
def test_components_that_differ_nowhere_are_copies(components, copies):
    sums = SimpleNamespace(weight=10.0, prior={"active": np.full(len(components), 5.0)})
    parameters = Parameters(np.array(components), {}, {})
    assert has_died(parameters, sums, DATA, same=1e-4) == copies
