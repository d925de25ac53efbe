"""Memory sizes as users write them."""

import pytest

from multicause.arrays import bytes_from


@pytest.mark.parametrize(("size", "expected"), [("2GB", 2 * 10**9), ("1.5 MiB", 1572864), (100, 100), ("7", 7)])
def test_memory_sizes(size, expected):
    assert bytes_from(size) == expected


@pytest.mark.parametrize("size", ["", "GB", "-1GB", 0, -5, None, "1XB", 1.5, True])
def test_wrong_memory_sizes(size):
    with pytest.raises(ValueError, match="memory size"):
        bytes_from(size)
