"""Metrics: how good what was learned is."""

from multicause.metrics.amari import amari_distance
from multicause.metrics.quality import approximation_quality
from multicause.metrics.recovery import Recovery, recovered_causes

__all__ = ["Recovery", "amari_distance", "approximation_quality", "recovered_causes"]
