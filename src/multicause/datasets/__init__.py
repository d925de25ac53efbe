"""Synthetic data sets with known causes, natural data sets, and readers of a user's own data."""

from multicause.datasets.bars import make_bars
from multicause.datasets.images import load_photographs, make_white_patches, whiten_image
from multicause.datasets.opening import open_rows
from multicause.datasets.overlap import reconstruct_image
from multicause.datasets.patches import make_patches
from multicause.datasets.phonemes import make_phoneme_mixtures
from multicause.datasets.reading import Reading, UserData, read_data
from multicause.datasets.sound_overlap import reconstruct_sound

__all__ = [
    "Reading",
    "UserData",
    "load_photographs",
    "make_bars",
    "make_patches",
    "make_phoneme_mixtures",
    "make_white_patches",
    "open_rows",
    "read_data",
    "reconstruct_image",
    "reconstruct_sound",
    "whiten_image",
]
