"""Names of classes in files: those of older files are found where the classes are now."""

import pytest

from multicause.persistence import encoding
from multicause.posteriors import ScalarProduct, UpperBound


@pytest.mark.parametrize("former", encoding.FORMER_NAMES)
def test_classes_that_were_renamed_or_moved_are_found(former):
    found = encoding._our_own(former)
    assert encoding.name_of(found) == encoding.FORMER_NAMES[former]


@pytest.mark.parametrize("kind", [ScalarProduct, UpperBound])
def test_selections_of_older_files_are_found(kind):
    assert encoding._our_own(f"multicause.posteriors.selection:{kind.__name__}") is kind
    assert encoding._our_own(encoding.name_of(kind)) is kind
