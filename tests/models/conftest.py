"""Data that tests of energy models share."""

import pytest

from tests.solvers.mixtures import mixture


@pytest.fixture(scope="module")
def mixed():
    """A mixture of four sources, the mixing matrix and the sources."""
    return mixture()
