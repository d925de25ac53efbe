"""Kinds of files by their suffix."""

from pathlib import Path

import pytest

from multicause.datasets.reading import kind_of
from multicause.runtime import file_kinds
from multicause.runtime.file_kinds import suffix_of


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.CSV", ".csv"), ("a.tsv.GZ", ".tsv.gz"), ("2024.01.npy", ".npy"), ("a.tar.gz", ".gz"), ("a", "")],
)
def test_compressed_text_has_one_suffix(name, suffix):
    assert suffix_of(Path(name)) == suffix


def test_a_suffix_is_of_one_kind():
    """Kinds that are read share no suffix, and what is written or read in parts can be read."""
    assert len(set(file_kinds.READABLE)) == len(file_kinds.READABLE)
    others = {*file_kinds.IN_PARTS, *file_kinds.WRITTEN_TABLES, *file_kinds.WRITTEN_IMAGES, *file_kinds.OPAQUE_IMAGES}
    assert others <= set(file_kinds.READABLE)
    names = ("rows.parquet", "rows.h5::name", "rows.zarr", "photo.tiff", "voice.wav")
    assert [kind_of(Path(name)) for name in names] == ["table", "table", "table", "image", "sound"]
