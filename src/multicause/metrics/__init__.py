"""Metrics: how good what was learned is, and what it looks like."""

from multicause.metrics.amari import amari_distance
from multicause.metrics.gabors import Gabors, fit_gabors
from multicause.metrics.quality import approximation_quality
from multicause.metrics.recovery import Recovery, recovered_causes
from multicause.metrics.time_frequency import TimeFrequencyPower, time_frequency_power

__all__ = [
    "Gabors",
    "Recovery",
    "TimeFrequencyPower",
    "amari_distance",
    "approximation_quality",
    "fit_gabors",
    "recovered_causes",
    "time_frequency_power",
]
