"""Data sets with known causes, and natural ones."""

from multicause.datasets.bars import make_bars
from multicause.datasets.images import load_photographs, make_white_patches, whiten_image
from multicause.datasets.patches import make_patches
from multicause.datasets.phonemes import make_phoneme_mixtures

__all__ = [
    "load_photographs",
    "make_bars",
    "make_patches",
    "make_phoneme_mixtures",
    "make_white_patches",
    "whiten_image",
]
