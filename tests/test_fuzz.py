"""A hundred draws of random data and settings; ``python -m benchmarks.fuzz`` makes any number of them."""

import pytest
from benchmarks.fuzz import NAMES, try_one

DRAWS = -(-100 // len(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_every_draw_ends_well_or_is_refused_with_advice(name):
    results = [try_one(name, seed, quick=True) for seed in range(DRAWS)]
    assert set(results) <= {"passed", "refused"}, "\n".join(results)
    assert "passed" in results
