"""Tasks on several threads: order of results, number of threads, errors, and threads inside threads."""

import threading
import time

import pytest

from multicause.runtime.parallel import number_of_jobs, run_all


def test_results_are_in_the_order_of_the_tasks():
    def slow_at_first(number):
        time.sleep(0.02 / (1 + number))
        return number

    assert run_all(slow_at_first, [(number,) for number in range(20)], 4) == list(range(20))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_as_many_threads_work_at_a_time_as_asked_for(n_threads):
    working, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(n_threads, timeout=60)  # fewer threads would never pass it

    def count(_):
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        together.wait()
        with lock:
            working -= 1

    run_all(count, [(None,)] * 12, n_threads)
    assert most <= n_threads


@pytest.mark.parametrize("error", [IndexError, KeyboardInterrupt, ValueError])
def test_an_error_reaches_the_caller_and_ends_the_other_tasks(error):
    done = []

    def fail(number):
        if number == 1:
            raise error("in task 1")
        time.sleep(0.02)
        done.append(number)

    with pytest.raises(error, match="in task 1"):
        run_all(fail, [(number,) for number in range(50)], 2)
    time.sleep(0.1)
    assert len(done) < 5
    assert run_all(lambda number: number, [(1,), (2,)], 2) == [1, 2]


def test_work_in_a_thread_gets_no_more_threads():
    assert number_of_jobs(3) == 3
    assert run_all(lambda _: number_of_jobs(3), [(None,)] * 2, 2) == [1, 1]


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_numbers_of_threads_are_checked(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a positive number of threads"):
        number_of_jobs(n_jobs)
