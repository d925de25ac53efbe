"""Metrics: how good what was learned is."""

from multicause.metrics.amari import amari_distance
from multicause.metrics.codes import Decomposition, coding_cost, conditional_histogram, decompose, kurtosis
from multicause.metrics.fields import found_causes, receptive_fields_by_dots, receptive_fields_by_gratings
from multicause.metrics.gabor import GaborFit, fit_gabors
from multicause.metrics.quality import approximation_quality
from multicause.metrics.recovery import Recovery, recovered_causes

__all__ = [
    "Decomposition",
    "GaborFit",
    "Recovery",
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
    "recovered_causes",
]
