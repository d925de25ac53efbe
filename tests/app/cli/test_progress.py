"""Progress of a fit in the terminal."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from multicause import MaximalCauses
from multicause.app.cli import progress as shown
from multicause.callbacks import IterationCallback
from multicause.datasets import make_bars


class Phases(IterationCallback):
    """Records the phase of each iteration."""

    def begin(self, estimator):
        self.phases = []

    def after(self, iteration):
        self.phases.append(iteration.phase)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_says_in_which_phase_it_is():
    recorder = Phases()
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=160)
    bars = make_bars(60, size=3, noise="poisson", random_state=0)
    model = MaximalCauses(6, noise="poisson", max_iter=60, random_state=0)
    model.set_callbacks(recorder, shown.FitProgress(console)).fit(bars.data)
    order = list(dict.fromkeys(recorder.phases))
    assert order[:2] == ["annealing", "learning"]
    assert set(order) <= {"annealing", "learning", "repairing", "final learning"}
    text = stream.getvalue()
    assert "MaximalCauses: searching for a start temperature" in text
    assert f"iteration {len(recorder.phases)}/60" in text
    assert "bound" in text


def test_the_time_left_follows_from_the_pace_of_the_last_iterations(monkeypatch):
    """Two seconds each: after 10 of 100 iterations, 180 s are left at most."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(shown.time, "monotonic", lambda: next(clock))
    line = shown.FitProgress(Console(file=io.StringIO()))
    line._most, line._moments = 100, [(0, shown.time.monotonic())]
    for number in range(1, 11):
        line._moments = [*line._moments, (number, shown.time.monotonic())][-shown.RECENT :]
    assert line._time_left(10) == "at most 3 min 0 s left"
    assert (shown._in_words(7.4), shown._in_words(7320)) == ("7 s", "2 h 2 min")
    line._most = None
    assert line._time_left(10) == ""


def test_a_line_without_iterations_ends_quietly():
    line = shown.FitProgress(Console(file=io.StringIO()))
    line.begin(MaximalCauses(3))
    line.teardown(None, None)
    line.after(SimpleNamespace(number=1))  # too late, and ignored
