"""Errors for optional packages that are not installed say how to install them."""

import math

import pytest

from multicause.runtime.optional import need


def test_an_installed_package_is_returned():
    assert need("math", "sums") is math


@pytest.mark.parametrize(
    ("extra", "name", "instead", "message"),
    [
        ("", "", "", "absent_one is needed for sums and is not installed. Install it with pip install absent_one."),
        (
            "images",
            "Absent",
            "add by hand",
            "Absent is needed for sums and is not installed. Install it with pip install 'multicause[images]', or add "
            "by hand.",
        ),
    ],
)
def test_a_missing_package_is_named_with_a_remedy(extra, name, instead, message):
    with pytest.raises(ImportError) as caught:
        need("absent_one", "sums", extra, name=name, instead=instead)
    assert str(caught.value) == message
