"""Components of two runs, matched with each other."""

from itertools import permutations

import numpy as np
import pytest

from multicause.app.report.runs import matched_components


def test_components_are_matched_with_the_largest_sum_of_cosines():
    """Compared with all permutations."""
    random = np.random.RandomState(1)
    first, second = random.normal(size=(4, 6)), random.normal(size=(5, 6))
    match = matched_components(first, second)
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (first, second)]
    cosines = np.abs(unit[0] @ unit[1].T)
    best = max(sum(cosines[h, order[h]] for h in range(4)) for order in permutations(range(5)))
    assert match.similarity.sum() == pytest.approx(best)
    assert (np.diff(match.similarity) <= 0).all()
    np.testing.assert_allclose(cosines[match.first, match.second], match.similarity)
