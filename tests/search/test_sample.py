"""Number of rows that are used to find causes."""

import pytest

from multicause.search.sample import rows_to_search


@pytest.mark.parametrize(
    ("n_rows", "n_components", "used"), [(500, 10, 500), (10**6, 10, 4000), (10**6, 100, 5000), (3000, 100, 3000)]
)
def test_some_thousand_rows_are_enough_to_find_causes(n_rows, n_components, used):
    assert rows_to_search(n_rows, n_components) == used
