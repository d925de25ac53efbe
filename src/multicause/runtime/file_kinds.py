"""Kinds of files by the suffix of their name, in lower case. Other modules have no lists of suffixes."""

from __future__ import annotations

from pathlib import Path

NPY, NPZ, PARQUET, ZARR, IML, GIF, PNG = ".npy", ".npz", ".parquet", ".zarr", ".iml", ".gif", ".png"
CSV, TSV, GZIP = ".csv", ".tsv", ".gz"
ARRAYS = (NPY, NPZ)
TEXTS = (CSV, TSV, CSV + GZIP, TSV + GZIP)
HDF5 = (".h5", ".hdf5")
TIFS = (".tif", ".tiff")

#: Files that are read as tables, images and sounds.
TABLES = (*ARRAYS, *TEXTS, PARQUET)
IMAGES = (PNG, ".jpg", ".jpeg", *TIFS, ".bmp", GIF, ".webp", ".pgm", ".ppm", IML)
SOUNDS = (".wav",)
#: Arrays that are never loaded like other tables; those that end in ``ZARR`` are folders.
STORES = (*HDF5, ZARR)
#: Files whose rows can be read in parts, and those of them that can also be loaded like other tables.
LOADABLE = (NPY, PARQUET)
IN_PARTS = (*LOADABLE, *STORES)
READABLE = (*TABLES, *STORES, *IMAGES, *SOUNDS)

#: Files that commands write.
WRITTEN_TABLES = (NPY, NPZ, CSV, PARQUET)
WRITTEN_IMAGES = (PNG, ".jpg", ".jpeg", *TIFS, ".bmp")
#: Images that cannot store a transparency.
OPAQUE_IMAGES = (".jpg", ".jpeg", ".bmp")
PAGES = (".html", ".htm")


def suffix_of(path: Path) -> str:
    """Return the suffix of a file's name in lower case; ".csv.gz" is one suffix."""
    last_two = "".join(path.suffixes[-2:]).lower()
    return last_two if last_two in TEXTS else path.suffix.lower()
