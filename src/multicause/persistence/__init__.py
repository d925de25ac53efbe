"""Saving, loading and checkpoints: one file with arrays and settings, without pickle, that is whole or refused."""

from multicause.persistence.checkpoints import newest_checkpoint
from multicause.persistence.container import ModelFileError
from multicause.persistence.models import load, save

__all__ = ["ModelFileError", "load", "newest_checkpoint", "save"]
