"""Learning on a Dask cluster: every estimator finds the same as without one.

The workers are threads of this process that are reached by TCP, so that everything is serialized as between machines,
but programs are compiled once. What needs processes of their own is in test_dask_processes.py.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import multicause
from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    MixtureOfPoissons,
    NoisyOrCauses,
    NonnegativeCauses,
    OwnCauses,
    PrincipalComponents,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
    SpikeAndSlabCauses,
    TruncatedAutoencoder,
)
from multicause.datasets import make_bars
from multicause.engines import Dask, dask_data
from multicause.metrics import recovered_causes
from multicause.posteriors import Beam, Evolved, Preselected
from tests.engines.conftest import PLAIN, import_or_skip
from tests.engines.four_blocks import FourBlocks

da = import_or_skip("dask.array")


def log_joint(parameters, states, rows):
    errors = rows[:, None] - states @ parameters["components"]
    return -states.sum(axis=-1) - 0.5 * jnp.sum(errors**2, axis=-1)


def initialize(X, n_components, random):
    return {"components": X.std() * random.normal(1, 0.3, (n_components, X.shape[1]))}


SUMS = [
    LinearCauses(5, **PLAIN),
    MaximalCauses(5, noise="poisson", posterior=Preselected(4, 2, keep=0.9), **PLAIN),
    FactorAnalysis(3, max_iter=4, random_state=0),
    KMeans(3, max_iter=3, random_state=0),
    MixtureOfPoissons(3, max_iter=3, random_state=0),
    IndependentComponents(max_iter=4, random_state=0),
    SpikeAndSlabCauses(3, posterior=Beam(2, 2), annealing=None, max_iter=4, tol=0, random_state=0),
]
MORE_SUMS = [
    NonnegativeCauses(3, **PLAIN),
    NoisyOrCauses(3, annealing=None, repair=False, max_iter=3, tol=0, random_state=0),
    RestrictedMaximalCauses(3, annealing=None, max_iter=3, tol=0, random_state=0),
    MixtureOfGaussians(2, max_iter=2, random_state=0),
    PrincipalComponents(2),
]
SMALL_BATCHES = [
    SparseCoding(3, max_iter=2, tol=0, random_state=0),
    HelmholtzMachine(3, max_iter=2, tol=0, random_state=0),
]
SINGLE_ROWS = [
    SoftmaxNetwork(3, max_iter=1, n_init=1, random_state=0),
    EnergyComponents(3, max_iter=2, batch_size=5, random_state=0),
    OwnCauses(log_joint, initialize, 3, posterior=Evolved(6), max_iter=2, batch_size=50, random_state=0),
    TruncatedAutoencoder(3, layers=(4,), posterior=Evolved(6), max_iter=2, batch_size=50, random_state=0),
]


def name_of(model):
    return type(model).__name__


def test_every_estimator_is_compared():
    public = {name for name in multicause.__all__ if isinstance(getattr(multicause, name), type)}
    assert {name_of(model) for model in [*SUMS, *MORE_SUMS, *SMALL_BATCHES, *SINGLE_ROWS]} == public


@pytest.mark.parametrize("model", SUMS, ids=name_of)
def test_a_fit_on_a_cluster_equals_one_in_this_process(client, rows, chunked, model):
    weights = np.random.RandomState(0).uniform(0.5, 2, len(rows))
    if isinstance(model, KMeans | MixtureOfPoissons):
        model = clone(model).set_params(init=rows[:3] + 0.5)
    here, there = (
        clone(model).fit(rows, sample_weight=weights),
        clone(model).fit(chunked, sample_weight=weights),  # the engine follows from the data
    )
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-3)
    blocks = chunked.to_delayed().ravel().tolist()
    np.testing.assert_allclose(there.transform(blocks).compute(), here.transform(rows), rtol=1e-3, atol=2e-3)
    lazy = there.transform(chunked)
    assert lazy.shape == (2000, len(here.components_))
    assert lazy.chunks[0] == chunked.chunks[0]
    np.testing.assert_allclose(lazy.compute(), here.transform(rows), rtol=1e-3, atol=2e-3)
    assert there.score(chunked) == pytest.approx(here.score(rows), rel=1e-5)


@pytest.mark.parametrize("model", MORE_SUMS, ids=name_of)
def test_other_models_of_sums_equal_those_of_this_process(client, model):
    rows = make_bars(2048, noise="poisson", random_state=0).data.astype(np.float32)
    if isinstance(model, NoisyOrCauses):
        rows = (rows > 4).astype(np.float32)
    if isinstance(model, MixtureOfGaussians):
        model = clone(model).set_params(init=rows[:2] + 0.5)
    engines = [(FourBlocks(), rows), (Dask(client), da.from_array(rows, chunks=(512, 25)))]
    here, there = (clone(model).set_params(engine=engine).fit(X) for engine, X in engines)
    np.testing.assert_allclose(there.lower_bound_, here.lower_bound_, rtol=1e-5)
    np.testing.assert_allclose(np.abs(there.components_), np.abs(here.components_), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model", SMALL_BATCHES, ids=name_of)
def test_models_of_small_batches_learn_where_the_rows_are(client, rows, model):
    # Four chunks of equal size here are four blocks there.
    binary = (rows > 4).astype(np.float32)
    weights = np.random.RandomState(0).uniform(0.5, 2, len(rows))
    here, there = (
        clone(model).set_params(engine=engine).fit(X, sample_weight=weights)
        for engine, X in [
            (FourBlocks(), binary),
            (None, da.from_array(binary, chunks=(500, 25))),
        ]
    )
    np.testing.assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-5)
    np.testing.assert_allclose(there.components_, here.components_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", SINGLE_ROWS, ids=name_of)
def test_models_of_single_rows_learn_from_a_sample_in_this_process(client, rows, model):
    parts = np.split(rows[:200], 4)
    chunked, more = (da.from_array(some, chunks=(50, 25)) for some in (rows[:200], rows[:400]))
    here, there = clone(model).fit(rows[:200]), clone(model).fit(chunked)  # all rows fit into the budget
    expected = np.concatenate([here.transform(part) for part in parts])
    np.testing.assert_allclose(there.transform(chunked).compute(), expected, rtol=1e-3, atol=1e-3)
    if hasattr(here, "components_"):  # own models have any parameters
        np.testing.assert_allclose(there.components_, here.components_, rtol=1e-4, atol=1e-5)
    small = clone(model).set_params(engine=Dask(client, memory_budget=20_000))
    with pytest.warns(UserWarning, match=r"holds a random sample of 200 rows, of 400.*Dask\(memory_budget="):
        assert small.fit(more).transform(parts[0]).shape == (50, 3)


def test_a_network_with_a_cluster_learns_from_all_rows_of_an_array(client, rows, monkeypatch):
    """The rows are in this process already; a cluster would give back a sample of them."""
    monkeypatch.setattr(dask_data, "ROWS_TO_LOOK_AT", 50)
    model = SoftmaxNetwork(3, max_iter=1, n_init=1, random_state=0)
    here = clone(model).fit(rows[:200])
    there = clone(model).set_params(engine=Dask(client)).fit(rows[:200])
    np.testing.assert_array_equal(there.components_, here.components_)


def test_a_search_on_a_cluster_finds_all_bars(client):
    # Causes are found in a sample in this process, and learned further from all rows.
    bars = make_bars(8000, size=3, noise="poisson", random_state=0)
    many = da.from_array(bars.data.astype(np.float32), chunks=(4000, 9))
    model = MaximalCauses(6, noise="poisson", random_state=0, max_iter=150).fit(many)
    assert recovered_causes(model, bars.causes).all_found
