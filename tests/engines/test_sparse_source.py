"""Sparse counts: the same results as of dense rows, and blocks instead of one dense array."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import get_tags

from multicause import MixtureOfPoissons, NonnegativeCauses
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.engines.array_sources import as_source

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SETTINGS = {"annealing": None, "max_iter": 4, "random_state": 0}


@pytest.fixture(scope="module")
def counts():
    return make_bars(300, size=4, noise="poisson", random_state=0).data


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_rows_are_those_of_the_matrix(counts, kind):
    source = as_source(getattr(sparse, f"{kind}_array")(counts.astype(np.int32)))
    assert (source.shape, source.dtype) == (counts.shape, np.float64)
    np.testing.assert_array_equal(source.read(7, 20), counts[7:20])
    assert as_source(sparse.csr_matrix(counts.astype(np.float32))).dtype == np.float32


@pytest.mark.parametrize(
    "model",
    [NonnegativeCauses(3, noise="poisson", **SETTINGS), MixtureOfPoissons(3, max_iter=4, random_state=0)],
    ids=["causes", "mixture"],
)
def test_sparse_counts_are_learned_as_dense_ones(model, counts):
    matrix = sparse.csr_array(counts)
    dense = model.fit(counts)
    components, causes, scores = dense.components_, dense.transform(counts), dense.score_samples(counts)
    found = model.fit(matrix)
    np.testing.assert_array_equal(found.components_, components)
    np.testing.assert_array_equal(found.transform(matrix), causes)
    np.testing.assert_array_equal(found.score_samples(matrix), scores)
    np.testing.assert_array_equal(found.reconstruct(matrix), found.reconstruct(counts))
    assert found.score(matrix) == pytest.approx(scores.mean())
    assert get_tags(model).input_tags.sparse


def test_a_matrix_that_exceeds_the_budget_is_read_in_blocks(counts, monkeypatch):
    """Dense rows would take 38 kB; in each pass over the data, few of them are dense at a time."""
    from multicause.engines import sparse_source

    largest, original = [], sparse_source.SparseSource._read

    def read(self, start, stop):
        largest.append(stop - start)
        return original(self, start, stop)

    monkeypatch.setattr(sparse_source.SparseSource, "_read", read)
    settings = {**SETTINGS, "noise": "poisson"}
    dense = NonnegativeCauses(3, **settings).fit(counts)
    init = dense.components_ + 1  # starts are drawn from rows that are looked at, which may differ
    matrix, engine = sparse.csr_array(counts), Local(memory_budget=30_000)
    found = NonnegativeCauses(3, init=init, engine=engine, **settings).fit(matrix)
    again = NonnegativeCauses(3, init=init, **settings).fit(counts)
    np.testing.assert_allclose(found.components_, again.components_, rtol=1e-6)
    np.testing.assert_allclose(found.score_samples(matrix), again.score_samples(counts), rtol=1e-6)
    np.testing.assert_allclose(found.transform(matrix), again.transform(counts), atol=1e-6)
    # Only samples of some thousand rows, which starts and checks look at, are read as a whole.
    assert np.quantile(largest, 0.9) < len(counts) / 4


def test_a_sparse_matrix_with_infinite_values_is_refused(counts):
    bad = counts.copy()
    bad[3, 2] = np.inf
    with pytest.raises(ValueError, match=r"(?i)inf"):
        MixtureOfPoissons(2).fit(sparse.csr_array(bad))
