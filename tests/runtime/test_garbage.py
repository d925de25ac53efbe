"""Garbage collection during a fit."""

import gc
import threading

import pytest

from multicause.runtime.garbage import NEW_OBJECTS, fewer_collections


@pytest.fixture
def often():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


def test_collections_are_rare_during_a_fit_and_as_before_afterwards(often):
    with fewer_collections():
        assert gc.get_threshold() == (NEW_OBJECTS, 10, 10)
        with fewer_collections():  # a fit inside a fit, such as a start of another model
            pass
        assert gc.get_threshold()[0] == NEW_OBJECTS
    assert gc.get_threshold() == often


def test_the_last_of_several_threads_restores_the_setting(often):
    inside, leave = threading.Event(), threading.Event()

    def fit():
        with fewer_collections():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=fit)
    thread.start()
    inside.wait()
    with fewer_collections():
        pass
    assert gc.get_threshold()[0] == NEW_OBJECTS
    leave.set()
    thread.join()
    assert gc.get_threshold() == often


def test_an_error_restores_the_setting(often):
    with pytest.raises(KeyError), fewer_collections():
        raise KeyError
    assert gc.get_threshold() == often


@pytest.mark.parametrize("own", [0, 2 * NEW_OBJECTS])
def test_settings_of_the_user_stay(often, own):
    gc.set_threshold(own)
    with fewer_collections():
        assert gc.get_threshold()[0] == own
    assert gc.get_threshold()[0] == own


def test_a_setting_that_is_made_during_the_fit_stays(often):
    with fewer_collections():
        gc.set_threshold(5_000)
    assert gc.get_threshold()[0] == 5_000
