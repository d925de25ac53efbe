"""Metrics of learned models: recovery of causes, reconstruction, sparseness, and properties of filters."""

from multicause.metrics.amari import amari_distance
from multicause.metrics.codes import Decomposition, coding_cost, conditional_histogram, decompose, kurtosis
from multicause.metrics.fields import found_causes, receptive_fields_by_dots, receptive_fields_by_gratings
from multicause.metrics.gabors import Gabors, fit_gabors
from multicause.metrics.quality import approximation_quality
from multicause.metrics.reconstruction import ReconstructionQuality, reconstruction_quality
from multicause.metrics.recovery import Recovery, recovered_causes
from multicause.metrics.time_frequency import TimeFrequencyPower, time_frequency_power

__all__ = [
    "Decomposition",
    "Gabors",
    "ReconstructionQuality",
    "Recovery",
    "TimeFrequencyPower",
    "amari_distance",
    "approximation_quality",
    "coding_cost",
    "conditional_histogram",
    "decompose",
    "fit_gabors",
    "found_causes",
    "kurtosis",
    "receptive_fields_by_dots",
    "receptive_fields_by_gratings",
    "reconstruction_quality",
    "recovered_causes",
    "time_frequency_power",
]
