"""Saving, loading and checkpoints: one checksummed file of arrays and settings, without pickle."""

from multicause.persistence.checkpoints import newest_checkpoint
from multicause.persistence.container import ModelFileError
from multicause.persistence.models import load, save

__all__ = ["ModelFileError", "load", "newest_checkpoint", "save"]
