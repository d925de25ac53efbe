"""Progress of a fit in the terminal: phase, iteration, bound and time left."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from multicause.callbacks import Iteration, IterationCallback

# Names of phases while nothing has been reported yet, with and without a search for a start temperature.
SEARCHING, BEGINNING = "searching for a start temperature", "preparing"
# Iterations from which the time of the next ones is estimated.
RECENT = 20


class FitProgress(IterationCallback):
    """One line that is redrawn: phase, bar, iteration, bound, seconds, and the time until ``max_iter`` at most.

    The time left is that of the remaining iterations at the pace of the last ones; learning that converges earlier
    ends earlier.
    """

    every_iteration = False

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None

    def begin(self, estimator: Any) -> None:
        """Show the progress line when a fit begins."""
        self._moments: list[tuple[int, float]] = [(0, time.monotonic())]
        self._name = type(estimator).__name__
        settings = estimator.get_params(deep=False)
        self._most = settings.get("max_iter")
        searching = settings.get("annealing") == "auto" and "repair" in settings
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
        )
        phase = SEARCHING if searching else BEGINNING
        self._task = self._progress.add_task(f"{self._name}: {phase}", total=self._most, state="", left="")
        self._progress.start()

    def after(self, iteration: Iteration) -> None:
        """Show the progress line with the state of the last iteration."""
        if self._progress is None:
            return
        self._moments = [*self._moments, (iteration.number, time.monotonic())][-RECENT:]
        bound = f"bound {iteration.bound:.4f}" if np.isfinite(iteration.bound) else ""
        hot = f"temperature {iteration.temperature:.3g}" if iteration.temperature != 1 else ""
        of = f"/{self._most}" if self._most else ""
        self._progress.update(
            self._task,
            description=f"{self._name}: {iteration.phase or ('annealing' if hot else 'learning')}",
            completed=iteration.number,
            state="  ".join(filter(None, [f"iteration {iteration.number}{of}", bound, hot])),
            left=self._time_left(iteration.number),
        )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Leave the line as it is."""
        if self._progress is not None:
            self._progress.update(self._task, left="")
            self._progress.stop()
            self._progress = None

    def _time_left(self, number: int) -> str:
        (first, began), (last, now) = self._moments[0], self._moments[-1]
        if not self._most or last <= first:
            return ""
        seconds = (self._most - number) * (now - began) / (last - first)
        return f"at most {_in_words(seconds)} left"


def _in_words(seconds: float) -> str:
    """Return a duration with one or two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
