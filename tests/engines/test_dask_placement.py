"""Parts of the data are distributed evenly over the workers, and stay there during a fit."""

from itertools import product

import numpy as np
import pytest

from multicause import LinearCauses
from multicause.callbacks import IterationCallback
from multicause.engines import Dask
from multicause.engines.dask_data import DaskData
from multicause.engines.dask_placement import balanced_homes
from multicause.posteriors import Evolved, Preselected
from tests.engines.conftest import import_or_skip

da = import_or_skip("dask.array")

N_ITERATIONS = 4


def largest_share(homes, sizes, n_threads):
    """Return the largest number of rows of a thread."""
    return max(
        sum(size for size, home in zip(sizes, homes, strict=True) if home == worker) / n_threads[worker]
        for worker in n_threads
    )


@pytest.mark.parametrize("n_threads", [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 1, "c": 4}])
def test_shares_are_within_a_part_of_the_best_ones(n_threads, seed):
    random = np.random.RandomState(seed)
    sizes = random.randint(1, 100, 7).tolist()
    holders = [random.choice([*n_threads, "gone"], random.randint(0, 3), replace=False).tolist() for _ in sizes]
    found = largest_share(balanced_homes(sizes, holders, n_threads), sizes, n_threads)
    best = min(largest_share(homes, sizes, n_threads) for homes in product(n_threads, repeat=len(sizes)))
    assert best <= found <= best + max(sizes)


def test_parts_stay_with_their_workers_if_shares_are_equal():
    holders = [["b"], ["a"], ["a"], ["b"]]
    assert balanced_homes([10, 10, 10, 10], holders, {"a": 1, "b": 1}) == ["b", "a", "a", "b"]
    assert balanced_homes([10, 10, 10], [["a"]] * 3, {"a": 1, "b": 1}).count("b") == 1
    assert balanced_homes([10, 10, 10], [["a"]] * 3, {"a": 2, "b": 1}).count("b") == 1
    assert balanced_homes([10, 10], [["a", "b"]] * 2, {"a": 1, "b": 1}) == ["a", "b"]


class NoteWorkers(IterationCallback):
    """Notes the workers that hold each part after each iteration."""

    def __init__(self, client, monkeypatch):
        self.client, self.seen, self.parts = client, [], []
        used = DaskData._map

        def noted(data, *arguments):
            self.parts = data._parts
            return used(data, *arguments)

        monkeypatch.setattr(DaskData, "_map", noted)

    def after(self, iteration):
        holders = self.client.who_has(self.parts)
        self.seen.append([tuple(holders[part.key]) for part in self.parts])


@pytest.mark.parametrize("posterior", [Preselected(3, 2, keep=None), Evolved(8)], ids=lambda each: type(each).__name__)
def test_no_part_moves_during_a_fit(client, rows, posterior, monkeypatch):
    # All chunks are on one worker at first.
    first, second = client.nthreads()
    X = client.persist(da.from_array(rows, chunks=(250, 25)), workers=[first])
    notes = NoteWorkers(client, monkeypatch)
    settings = {"annealing": None, "repair": False, "max_iter": N_ITERATIONS, "tol": 0, "random_state": 0}
    LinearCauses(4, posterior=posterior, engine=Dask(client), **settings).set_callbacks(notes).fit(X)
    assert len(notes.seen) == N_ITERATIONS
    assert sorted(notes.seen[0]) == [*[(min(first, second),)] * 4, *[(max(first, second),)] * 4]
    assert all(holders == notes.seen[0] for holders in notes.seen)
    # Dask knows how large they are, which it takes into account when it moves or stores data.
    sizes = [client.cluster.scheduler.tasks[part.key].nbytes for part in notes.parts]
    assert min(sizes) >= 250 * 25 * 4
