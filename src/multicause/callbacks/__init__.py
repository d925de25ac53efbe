"""Callbacks: small objects that follow a fit, given to a model by ``set_callbacks``.

They are scikit-learn's callbacks, so that its own work too, and a clone of a model has the same ones. Those with
attributes speak of the last fit that they have followed.
"""

from multicause.callbacks.adapter import CallbackSupportMixin, FitSession, History, Iteration, IterationCallback
from multicause.callbacks.bound_monitor import BoundMonitor
from multicause.callbacks.checkpoint import Checkpoint
from multicause.callbacks.early_stopping import EarlyStopping
from multicause.callbacks.field_recorder import FieldRecorder
from multicause.callbacks.progress_bar import ProgressBar

__all__ = [
    "BoundMonitor",
    "CallbackSupportMixin",
    "Checkpoint",
    "EarlyStopping",
    "FieldRecorder",
    "FitSession",
    "History",
    "Iteration",
    "IterationCallback",
    "ProgressBar",
]
