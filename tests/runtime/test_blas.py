"""One thread for BLAS and LAPACK while programs use all cores."""

import pytest
import scipy.linalg  # noqa: F401  (so that its BLAS library is loaded)
from threadpoolctl import threadpool_info, threadpool_limits

from multicause import LinearCauses
from multicause.callbacks import IterationCallback
from multicause.datasets import make_bars
from multicause.em import runners
from multicause.runtime.blas import one_blas_thread


def n_threads():
    """Return the numbers of threads of all BLAS libraries."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    """Give BLAS two threads, also on machines with one core."""
    with threadpool_limits(2, user_api="blas"):
        yield


def test_the_limit_holds_inside_the_block_and_ends_with_it():
    with pytest.raises(KeyError), one_blas_thread():  # noqa: PT012
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
        raise KeyError
    assert n_threads() == {2}


class Recorder(IterationCallback):
    """Record the numbers of threads that callbacks have."""

    def __init__(self):
        self.seen = []

    def after(self, iteration):
        self.seen.append(n_threads())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_use_one_thread_for_steps_alone(monkeypatch):
    recorder, during = Recorder(), []

    def em_step(*arguments):
        during.append(n_threads())
        return one_step(*arguments)

    one_step = runners._run_steps
    monkeypatch.setattr(runners, "_run_steps", em_step)
    X = make_bars(30, size=3, random_state=0).data
    LinearCauses(2, annealing=None, repair=False, max_iter=3, tol=0, random_state=0).set_callbacks(recorder).fit(X)
    assert during[0] == {1}
    assert recorder.seen == [{2}, {2}, {2}]
    assert n_threads() == {2}
