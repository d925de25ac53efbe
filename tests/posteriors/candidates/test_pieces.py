"""Rows in pieces that fit into the cache: the same results as in one piece."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.em.e_step import statistics_of
from multicause.posteriors import Preselected
from multicause.posteriors.candidates import pieces
from multicause.records import Block
from tests.posteriors.conftest import D, H

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("cut", [False, True])
def test_rows_in_pieces_give_the_same(case, cut, monkeypatch, seed):
    fit, X, _, _ = case
    fitted = fit(Preselected(4, 3, keep=None))
    model, parameters = fitted._model, fitted._parameters
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(X))

    def inferred():
        numbers = []

        def results(parameters, block):
            given = (model, parameters, block, jnp.asarray(2.0))
            inference = model.posterior.infer(*given)
            if cut:
                weighed = model.posterior.weigh(*given)
                inference = model.posterior.infer_from(*given, weighed, jnp.median(inference.free_energy))
            numbers.append(inference._pieces.number)
            found = statistics_of(model, parameters, block, inference), inference.mean_causes, inference.mean_data()
            return *found, inference.recognize(3)

        rows = jnp.asarray(X)
        found = jax.jit(results)(parameters, Block(rows, jnp.asarray(weights), model.noise.summarize(rows)))
        return *numbers, found

    with double_precision():
        one, whole = inferred()
        # 40 rows in seven pieces of six, the last one filled up.
        monkeypatch.setattr(pieces, "fastest_block", lambda: 6 * model.posterior.bytes_per_row(H, D, 8, model.linear))
        many, in_pieces = inferred()
    assert (one, many) == (1, 7)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(in_pieces), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_selection_sees_no_rows_but_those_of_the_data(monkeypatch):
    """Cosines have no value for rows of zeros, with which a piece must not be filled up."""
    X = make_bars(41, size=3, random_state=0).data + 1.0

    def fitted(keep):
        def cosine(rows, components):  # another function for every fit, so that all have programs of their own
            return rows / jnp.linalg.norm(rows, axis=1, keepdims=True) @ components.T

        posterior = Preselected(4, 3, keep=keep, selection=cosine)
        return MaximalCauses(6, posterior=posterior, annealing=None, max_iter=35, tol=0.0, random_state=0).fit(X)

    for keep in (None, 0.9):
        with monkeypatch.context() as patch:
            whole = fitted(keep)
            size = 6 * whole._model.posterior.bytes_per_row(6, 9, 8)
            patch.setattr(pieces, "fastest_block", lambda size=size: size)
            in_pieces = fitted(keep)
        assert in_pieces.outcome_ == whole.outcome_ != "non_finite"
        np.testing.assert_allclose(in_pieces.components_, whole.components_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n_rows", "rows_in_cache"), [(10, 0.1), (10, 1.4), (41, 6), (1000, 3), (7, 100), (1, 0.5)])
def test_no_piece_is_filling_alone(n_rows, rows_in_cache, monkeypatch):
    monkeypatch.setattr(pieces, "fastest_block", lambda: int(1000 * rows_in_cache))
    found = pieces.Pieces.for_cache(n_rows, 1000)
    assert (found.number - 1) * found.size < n_rows <= found.number * found.size
    rows = jnp.arange(2.0 * n_rows).reshape(n_rows, 2)
    with double_precision():
        np.testing.assert_array_equal(found.join(found.split(rows.T)).T, rows)
        np.testing.assert_array_equal(found.split_rows(rows).reshape(-1, 2)[:n_rows], rows)
