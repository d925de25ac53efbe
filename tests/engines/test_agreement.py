"""Engines agree: one block, many blocks, a memory map and a cluster give the same fit of models with special parts.

Other models are compared in the tests of each engine, and posteriors that keep states of rows in test_evolved.py.
"""

import numpy as np
import pytest
from sklearn.base import clone

from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.combinations import MaximumMagnitude
from multicause.datasets import make_bars
from multicause.engines import Dask, Local
from multicause.priors import Graded, Ternary
from tests.engines.conftest import import_or_skip

PLAIN = {"annealing": None, "repair": False, "max_iter": 3, "tol": 0, "random_state": 0}
SIGNED = {"kind": "signed", "noise": "gaussian"}
BINARY = {"value": 0.9, "combination": "noisy_or", "noise": "bernoulli"}
CASES = {
    "noisy-or": (NoisyOrCauses(3, **PLAIN), BINARY),
    "maximum of probabilities": (MaximalCauses(3, noise="bernoulli", **PLAIN), BINARY),
    "maximum magnitude": (MaximalCauses(3, combination=MaximumMagnitude(), **PLAIN), SIGNED),
    "ternary": (LinearCauses(3, prior=Ternary(), **PLAIN), SIGNED),
    "graded": (LinearCauses(3, prior=Graded((0, 1, 2)), **PLAIN), SIGNED),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_engines_agree(case, client, tmp_path):
    arrays = import_or_skip("dask.array")
    model, kind = CASES[case]
    X = make_bars(960, size=3, random_state=0, **kind).data
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    whole = clone(model).fit(X)
    small = Local(memory_budget=X.nbytes // 2, n_jobs=1)  # several blocks, and rows of a file are read in every pass
    assert small.source(stored) is not None
    for engine, rows in ((small, X), (small, stored), (Dask(client), arrays.from_array(X, chunks=(480, 9)))):
        found = clone(model).set_params(engine=engine).fit(rows)
        np.testing.assert_allclose(found.lower_bounds_, whole.lower_bounds_, rtol=1e-8)
        np.testing.assert_allclose(found.components_, whole.components_, rtol=1e-6, atol=1e-8)
