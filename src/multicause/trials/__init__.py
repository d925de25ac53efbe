"""Trials in bulk: one estimator, many data sets and starts, one program."""

from multicause.trials.base import BulkTrial
from multicause.trials.fitting import fit_trials

__all__ = ["BulkTrial", "fit_trials"]
