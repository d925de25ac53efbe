"""Names of classes and fields in files: those of older files are found by their present names."""

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


@pytest.mark.parametrize("kind", encoding.FORMER_FIELDS)
def test_fields_that_were_renamed_are_read(kind):
    record = encoding._our_own(kind)
    former = {now: before for before, now in encoding.FORMER_FIELDS[kind].items()}
    fields = {former.get(name, name): number for number, name in enumerate(record._fields)}
    read = encoding.decode({"record": kind, "fields": fields}, {}, {})
    assert read == record(*range(len(record._fields)))
