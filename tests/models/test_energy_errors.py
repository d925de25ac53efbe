"""Data and settings that EnergyComponents refuses, and learning that meets energies that are not finite."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from multicause import EnergyComponents
from multicause.energies import Logistic, Student
from multicause.engines import Local
from multicause.samplers import Hamiltonian
from multicause.solvers.optimizers import Momentum, Optax

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FEW = {"max_iter": 20, "random_state": 0}
EXACT = FEW | {"sampler": "exact"}


def with_columns(X, *columns):
    return np.column_stack([X, *columns])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda X: with_columns(X, np.full(len(X), 7.0)),
            r"1 of the 5 columns of X do not vary \(columns 4\).*n_whitened=4",
        ),
        (
            lambda X: with_columns(X, X[:, 0] - 2 * X[:, 1]),
            "X varies in 4 of 5 directions only, and 5 are to be.*n_whitened=4",
        ),
        (lambda X: X[:3], "X varies in 2 of 4 directions only, and 4 are to be whitened.*give more rows"),
        (lambda X: np.zeros_like(X), r"All values of X are equal \(0\)"),
        (lambda X: np.tile(X[:1], (9, 1)), "All 4 columns of X are constant"),
        (lambda X: X * 1e200, "too large to be squared"),
        (lambda X: np.where(X > 5, np.nan, X), "Input X contains NaN"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_data(mixed, change, text, dtype):
    X = change(mixed[0])
    if dtype == np.float32 and np.abs(X).max() > 1e100:
        pytest.skip("these values are infinite in single precision")
    for whiten in ("pca", "zca", *([None] if "constant" in text else [])):
        with pytest.raises(ValueError, match=text):
            EnergyComponents(whiten=whiten, **FEW).fit(X.astype(dtype))


def test_deficient_data_can_be_learned_as_the_error_says(mixed):
    X = with_columns(mixed[0], mixed[0][:, 0] - 2 * mixed[0][:, 1])
    model = EnergyComponents(n_whitened=4, **EXACT).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-6, atol=1e-6)
    assert np.isfinite(EnergyComponents(whiten=None, sampler="exact", **FEW).fit(X).components_).all()


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        (
            {"n_components": 5, "sampler": "exact"},
            ValueError,
            r"sampler='exact' needs a known partition.*overcomplete \(5 components in 4 dimensions\).*'hamiltonian'",
        ),
        ({"n_components": 5, "sampler": "equilibrium"}, ValueError, "sampler='equilibrium' needs.*overcomplete"),
        ({"layers": (2,), "sampler": "exact"}, ValueError, "the model has several layers"),
        ({"expert": jnp.abs, "sampler": "exact"}, ValueError, "FunctionExpert has no log_partition"),
        ({"expert": lambda h: h.sum(axis=1)}, ValueError, "one energy per activity"),
        ({"expert": "gaussian"}, ValueError, "Unknown expert 'gaussian'. Known: 'logistic', 'student', or an object"),
        ({"expert": Logistic}, TypeError, r"Did you mean Logistic\(\)"),
        ({"expert": Student(exponent=-1)}, ValueError, "exponent of Student must be a positive number; got -1"),
        ({"sampler": "gibbs"}, ValueError, "Unknown sampler 'gibbs'. Known: 'hamiltonian'"),
        ({"sampler": Hamiltonian(0)}, ValueError, "n_leapfrog must be a positive whole number; got 0"),
        ({"sampler": Hamiltonian(acceptance=1.5)}, ValueError, "acceptance of Hamiltonian must lie between 0 and 1"),
        ({"optimizer": "lbfgsx"}, ValueError, "Unknown optimizer 'lbfgsx'. Known: 'momentum', 'adam', or an object"),
        ({"optimizer": Optax("adamm")}, ValueError, "that of an optimizer of optax.*got 'adamm'"),
        (
            {"optimizer": Optax("adam", {"b3": 1})},
            ValueError,
            r"optax.adam with the settings \{'b3': 1\} cannot be used",
        ),
        ({"optimizer": Optax("polyak_sgd")}, ValueError, "that of an optimizer|nothing but gradients"),
        ({"optimizer": Momentum(1.5)}, ValueError, "momentum must be at least 0 and below 1; got 1.5"),
        ({"layers": (0,)}, ValueError, r"layers must be a tuple.*got \(0,\)"),
        ({"init": "zeros"}, ValueError, "Unknown init 'zeros'"),
        (
            {"init": np.ones((2, 4))},
            ValueError,
            r"init must hold finite filters.*\(4, 4\); got an array of shape \(2, 4\)",
        ),
        ({"init": np.ones((4, 4))}, ValueError, "4 linearly independent filters; these have rank 1"),
        ({"init": [["a"] * 4] * 4}, ValueError, "init must be a name or an array of numbers"),
        ({"layers": (True,)}, ValueError, "layers must be a tuple"),
        ({"whiten": "zca", "n_whitened": 2}, ValueError, "needs whiten='pca'"),
        ({"n_whitened": 9}, ValueError, "at most 4"),
        ({"n_components": 0}, ValueError, "n_components"),
        ({"nonlinearity": "step"}, ValueError, "nonlinearity"),
        ({"engine": Local(memory_budget=1000)}, ValueError, "Lower batch_size|needs at least"),
    ],
)
def test_settings(mixed, settings, error, text):
    with pytest.raises(error, match=text):
        EnergyComponents(**(FEW | settings)).fit(mixed[0])


@pytest.mark.parametrize("settings", [{"sampler": "nope"}, {"expert": "nope"}, {"optimizer": "nope"}])
def test_parts_are_checked_without_data(settings):
    (value,) = settings.values()
    with pytest.raises(ValueError, match=f"Unknown \\w+ '{value}'"):
        EnergyComponents(3, **settings).check_settings()
    EnergyComponents(3).check_settings()


def test_methods_of_a_model(mixed):
    with pytest.raises(NotFittedError):
        EnergyComponents().transform(mixed[0])
    model = EnergyComponents(6, sampler="metropolis", **FEW).fit(mixed[0])
    with pytest.raises(ValueError, match=r"Activities must have shape \(n_samples, 6\); got \(2, 5\)"):
        model.inverse_transform(np.ones((2, 5)))
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1; got 0"):
        model.sample(0)
    with pytest.raises(ValueError, match="n_chains must be a whole number of at least 2"):
        model.estimate_log_partition(n_chains=1)
    with pytest.raises(ValueError, match="6 features|4 features"):
        model.transform(np.ones((3, 6)))


def quartic(h):
    return h**4


def test_learning_that_explodes_ends_with_a_name_and_finite_filters(mixed):
    X = mixed[0][:200]
    settings = {"expert": quartic, "sampler": "metropolis", "learning_rate": 1e200, "max_iter": 20, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="outcome_='non_finite'"):
        model = EnergyComponents(**settings).fit(X)
    assert model.outcome_ == "non_finite"
    assert not model.converged_
    assert model.n_iter_ < 20
    assert np.isfinite(model.components_).all()
    with pytest.warns(ConvergenceWarning, match="outcome_='non_finite'"):
        model = EnergyComponents(**settings).partial_fit(X)
    assert model.outcome_ == "non_finite"
    assert np.isfinite(model.components_).all()
    # Chains that accept nothing leave the filters alone, which is no convergence.
    chain = {"sampler": Hamiltonian(2), "learning_rate": 1e30, "max_iter": 50}
    stuck = EnergyComponents(8, **(settings | chain)).fit(X)
    assert stuck.drift_ < stuck.tol
    assert stuck.outcome_ == "max_iter"


def test_data_without_an_energy_are_no_success(mixed):
    """The expert has no value where one row is; a later, better batch is learned from, and warns of nothing."""

    def walled(h):
        return jnp.where(jnp.abs(h) > 6, jnp.nan, h**2 / 2)

    X = np.clip(mixed[0][:200], 0, 6)
    bad = X.copy()
    bad[0] = 1000
    settings = FEW | {"expert": walled, "init": "unit", "sampler": "metropolis", "batch_size": None}
    with pytest.warns(ConvergenceWarning, match="outcome_='non_finite'.*check that the expert is finite"):
        model = EnergyComponents(**settings).partial_fit(bad)
    assert model.outcome_ == "non_finite"
    assert np.isfinite(model.step_size_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X)
    assert model.outcome_ == "max_iter"


def test_an_energy_that_is_not_finite_everywhere_is_reported(mixed):
    """Chains are rejected where the expert has no value, and their number is told."""

    def walled(h):
        return jnp.where(jnp.abs(h) > 6, jnp.nan, h**2 / 2)

    X = np.clip(mixed[0], -5, 11)
    with pytest.warns(ConvergenceWarning, match="proposals of the sampler had an energy that is not finite"):
        model = EnergyComponents(
            expert=walled,
            sampler="metropolis",
            n_steps=20,
            learning_rate=1e-6,
            init="unit",
            max_iter=20,
            random_state=0,
        ).fit(X)
    assert model.n_rejected_ > 0
    assert np.isfinite(model.components_).all()
