"""The journal alone: which state a loop is entered with, and which random numbers follow."""

from typing import NamedTuple

import numpy as np
import pytest

from multicause.persistence.journal import Journal


class Count(NamedTuple):
    number: int = 0


class Other(NamedTuple):
    name: str = ""


def test_a_loop_begins_with_its_first_state_which_is_made_only_then():
    made = []
    with Journal().loop(Count, lambda: made.append(1) or Count(7)) as loop:
        assert loop.state == Count(7)
    assert made == [1]


def test_the_record_has_the_states_of_all_running_loops_from_the_outermost():
    journal = Journal()
    assert journal.record().states == ()
    with journal.loop(Count, Count) as outer:
        outer.state = Count(2)
        with journal.loop(Other, lambda: Other("inner")):
            assert journal.record().states == (Count(2), Other("inner"))
            assert journal.innermost == Other("inner")
        assert journal.record().states == (Count(2),)
    assert journal.record().states == ()


def test_a_loop_that_raises_is_no_longer_running():
    journal = Journal()
    with pytest.raises(RuntimeError), journal.loop(Count, Count):
        raise RuntimeError
    assert journal.record().states == ()


def interrupted():
    """A record within two loops, and the random numbers that come before and after it."""
    journal = Journal(np.random.RandomState(3))
    before = journal.random.uniform(size=4)
    with journal.loop(Count, lambda: Count(5)), journal.loop(Other, lambda: Other("saved")):
        record = journal.record()
        return record, before, journal.random.uniform(size=4)


def test_a_resumed_fit_enters_its_loops_where_they_were():
    """What lies before the loops draws the random numbers of then, and what lies within those that would have come."""
    record, before, after = interrupted()
    journal = Journal(past=record)
    np.testing.assert_array_equal(journal.random.uniform(size=4), before)
    with journal.loop(Count, pytest.fail) as outer:
        assert outer.state == Count(5)
        with journal.loop(Other, pytest.fail) as inner:
            assert inner.state == Other("saved")
            np.testing.assert_array_equal(journal.random.uniform(size=4), after)
        with journal.loop(Other, lambda: Other("next")) as following:  # finished loops are entered again
            assert following.state == Other("next")


def test_the_users_generator_is_left_alone():
    record, _, _ = interrupted()
    mine = np.random.RandomState(11)
    journal = Journal(mine, past=record)
    journal.random.uniform(size=100)
    assert journal.random is not mine
    np.testing.assert_array_equal(mine.uniform(size=3), np.random.RandomState(11).uniform(size=3))
    assert Journal(mine).random is mine


def test_a_record_of_another_algorithm_is_refused():
    record, _, _ = interrupted()
    message = "belongs to another learning algorithm: expected a state Other, got Count. Fit without resume"
    with pytest.raises(ValueError, match=message), Journal(past=record).loop(Other, Other):
        pass
