"""Metrics: how well causes were recovered."""

from multicause.metrics.amari import amari_distance
from multicause.metrics.recovery import Recovery, recovered_causes

__all__ = ["Recovery", "amari_distance", "recovered_causes"]
