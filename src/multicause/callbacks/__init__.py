"""Callbacks that follow a fit, given to a model by ``set_callbacks``.

They use scikit-learn's callback interface, so that scikit-learn's own callbacks work too, and a clone of a model has
the same callbacks. Attributes of a callback refer to the last fit that it followed.
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
