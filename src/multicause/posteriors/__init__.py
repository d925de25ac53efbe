"""Posteriors: which states are considered for one row, and their weights."""

from multicause.posteriors.base import Inference, Posterior, Recognized
from multicause.posteriors.exact import Exact

NAMES: dict[str, type] = {"exact": Exact}

__all__ = ["NAMES", "Exact", "Inference", "Posterior", "Recognized"]
