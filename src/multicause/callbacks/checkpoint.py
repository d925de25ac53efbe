"""Callback that writes checkpoints, from which a fit can resume after a crash."""

from __future__ import annotations

import os
import time
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from multicause.callbacks.adapter import Iteration, IterationCallback
from multicause.persistence.checkpoints import write_checkpoint
from multicause.persistence.models import check_savable


class Checkpoint(IterationCallback):
    """Write a checkpoint every few iterations or seconds, and keep the newest ones.

    ``model.fit(X, resume=folder)`` with the same model and data resumes from the newest checkpoint and ends with the
    same parameters, bit for bit on the same machine, as a fit that was never interrupted. A fit that Ctrl-C ends leaves
    a checkpoint of its last iteration. :func:`multicause.load` reads the best model so far from a checkpoint.
    Checkpoints are written atomically: a crash never leaves an incomplete one. Fits with other settings or data, as in
    a grid search, can share the folder.

    Parameters
    ----------
    folder : path-like
        Folder for the checkpoints; it must exist.
    every : int, optional
        Number of iterations between checkpoints.
    seconds : float, optional
        Minimum time between checkpoints in seconds. Exactly one of ``every`` and ``seconds`` must be given.
    max_files : int, default=2
        Number of checkpoints of the fit that stay in the folder; older ones are removed.

    Attributes
    ----------
    path : Path or None
        The newest checkpoint of the last fit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from multicause import MixtureOfGaussians
    >>> from multicause.callbacks import Checkpoint
    >>> X, folder = np.random.RandomState(0).normal(size=(50, 2)), tempfile.mkdtemp()
    >>> model = MixtureOfGaussians(2, random_state=0).set_callbacks(Checkpoint(folder, every=2)).fit(X)
    >>> again = MixtureOfGaussians(2, random_state=0).fit(X, resume=folder)
    >>> bool((again.components_ == model.components_).all())
    True
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        every: int | None = None,
        seconds: float | None = None,
        max_files: int = 2,
    ) -> None:
        if (every is None) == (seconds is None):
            raise ValueError(
                f"Checkpoint needs either every=... iterations or seconds=...; got every={every!r} and "
                f"seconds={seconds!r}."
            )
        if seconds is not None and (
            not isinstance(seconds, Real) or isinstance(seconds, bool) or not np.isfinite(seconds) or seconds < 0
        ):
            raise ValueError(f"seconds must be a number of at least 0; got {seconds!r}.")
        if not isinstance(max_files, Integral) or isinstance(max_files, bool) or max_files < 1:
            raise ValueError(f"max_files must be a whole number of checkpoints of at least 1; got {max_files!r}.")
        self.folder: Path = Path(folder)
        self.every: int | None = None if every is None else check_every(every)
        self.seconds: float | None = seconds
        self.max_files: int = int(max_files)
        self.path: Path | None = None
        self.every_iteration = seconds is None

    def begin(self, estimator: Any) -> None:
        """Check, before time is spent on learning, that the folder is writable and the model can be saved."""
        check_savable(estimator)
        if not self.folder.is_dir():
            raise FileNotFoundError(
                f"Cannot write checkpoints to {self.folder}: it is not a folder. Create it first, or pass another one."
            )
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(
                f"Cannot write checkpoints to {self.folder}: permission denied. Change the permissions of the folder, "
                "or pass another one."
            )
        self.path, self._number, self._last = None, 0, time.monotonic()

    def after(self, iteration: Iteration) -> None:
        """Schedule a checkpoint, if one is due."""
        if self.every is not None:
            due = iteration.number % self.every == 0
        else:
            assert self.seconds is not None
            due = time.monotonic() - self._last >= self.seconds
        if due:
            # Callbacks that are called later may change their state, which the checkpoint must include.
            iteration.deferred.append(self._write)

    def interrupted(self, iteration: Iteration) -> None:
        """Write a checkpoint of the last iteration."""
        if self._number != iteration.number:
            self._write(iteration)

    def _write(self, iteration: Iteration) -> None:
        """Write a checkpoint of an iteration."""
        self.path = write_checkpoint(
            iteration.model(), self.folder, iteration.number, self.max_files, iteration.checkpoint()
        )
        self._number, self._last = iteration.number, time.monotonic()


def check_every(every: Any) -> int:
    """Return a validated number of iterations."""
    if not isinstance(every, Integral) or isinstance(every, bool) or every < 1:
        raise ValueError(f"every must be a whole number of iterations of at least 1; got {every!r}.")
    return int(every)
