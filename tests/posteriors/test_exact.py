"""The exact posterior refuses too many states, and names the posteriors that consider fewer."""

import pytest

from multicause.posteriors import NAMES, Exact


def test_the_error_names_all_other_posteriors():
    with pytest.raises(ValueError, match=r"2\^30 = 1,073,741,824 states, more than max_states=") as refused:
        Exact().check(30)
    for name in NAMES:
        assert (f"posterior={name!r}" in str(refused.value)) == (name != "exact")
    Exact().check(3)
