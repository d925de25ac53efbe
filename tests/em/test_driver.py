"""The loop of all learning algorithms: order of steps and reports, stopping, and resuming from its journal."""

from typing import NamedTuple

import pytest

from multicause.em.driver import run_loop
from multicause.outcomes import Outcome
from multicause.persistence.journal import Journal


class Sum(NamedTuple):
    """Sum of random numbers, the state of a small algorithm."""

    number: int = 0
    total: float = 0.0
    outcome: Outcome | None = None


class Outer(NamedTuple):
    """Sums of several inner loops."""

    totals: tuple[float, ...] = ()


def add_up(journal, watch=None, until=5):
    def step(state):
        return Sum(state.number + 1, state.total + journal.random.random_sample())

    return run_loop(
        Sum,
        Sum,
        step,
        goes_on=lambda state: state.outcome is None and state.number < until,
        report=lambda before, after: range(before.number, after.number),
        watch=watch,
        journal=journal,
    )


def add_up_thrice(journal, watch=None):
    def step(state):
        return Outer((*state.totals, add_up(journal, watch).total))

    return run_loop(Outer, Outer, step, goes_on=lambda state: len(state.totals) < 3, journal=journal)


def test_steps_run_until_the_state_says_so_and_all_are_reported():
    reported = []
    assert add_up(Journal(), lambda progress: reported.append(progress)).number == 5
    assert reported == [0, 1, 2, 3, 4]


def test_a_loop_without_steps_returns_its_first_state():
    assert add_up(Journal(), until=0) == Sum()


def test_a_watcher_stops_the_loop_after_its_step():
    end = add_up(Journal(), lambda progress: progress == 2)
    assert (end.number, end.outcome) == (3, Outcome.STOPPED)


@pytest.mark.parametrize("at", [1, 6, 15])
def test_nested_loops_resume_bit_by_bit(at):
    journal, records = Journal(), []
    whole = add_up_thrice(journal, lambda progress: records.append(journal.record()))
    assert len(records) == 15
    told = []
    assert add_up_thrice(Journal(past=records[at - 1]), told.append) == whole
    assert len(told) == 15 - at


def test_a_checkpoint_of_another_algorithm_is_refused():
    journal, records = Journal(), []
    add_up(journal, lambda progress: records.append(journal.record()))
    with pytest.raises(ValueError, match="belongs to another learning algorithm: expected a state Outer, got Sum"):
        add_up_thrice(Journal(past=records[0]))
