"""What importing costs, and what a second fit does not compile."""

import subprocess
import sys

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    NoisyOrCauses,
    OwnCauses,
    PrincipalComponents,
    SoftmaxNetwork,
    SparseCoding,
    SpikeAndSlabCauses,
    TruncatedAutoencoder,
)
from multicause.datasets import make_bars

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def modules_after(code):
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_import_is_light():
    loaded = modules_after("import multicause")
    for heavy in ("jax", "jaxlib", "matplotlib", "dask", "typer", "rich", "pandas", "sklearn"):
        assert heavy not in loaded


def test_estimators_import_no_plots_and_start_no_device():
    code = (
        "from multicause.priors import Bernoulli\n"  # parts can be imported before anything else
        "from multicause import EnergyComponents, MaximalCauses, LinearCauses\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge.backends_are_initialized(), 'importing started a device'"
    )
    loaded = modules_after(code)
    for heavy in ("matplotlib", "dask", "typer", "optax"):  # scikit-learn's callbacks bring rich themselves
        assert heavy not in loaded


def test_unknown_name_lists_the_known():
    import multicause

    with pytest.raises(AttributeError, match="it offers .*LinearCauses, MaximalCauses, .*load"):
        _ = multicause.Nonsense
    assert "MaximalCauses" in dir(multicause)


@pytest.mark.parametrize("estimator", [MaximalCauses, LinearCauses])
def test_a_second_fit_compiles_nothing(estimator):
    X = make_bars(50, size=3, noise="gaussian", random_state=0).data
    compiled = []

    def listen(event, duration, **_):
        if "backend_compile" in event:
            compiled.append(event)

    def use(seed, repair):
        model = estimator(3, random_state=seed, max_iter=60, repair=repair).fit(X + seed)
        model.transform(X)
        model.score(X)
        model.sample(4, random_state=0)
        model.recognize(X)

    use(0, repair=True)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        use(0, repair=True)
        use(1, repair=False)  # other data of the same shape
        assert compiled == []
        estimator(4, max_iter=2).fit(X)  # another shape does compile, so the listener works
        assert compiled
    finally:
        jax.monitoring.clear_event_listeners()


def log_joint(parameters, states, rows):
    return -0.5 * jnp.sum((rows[:, None] - states @ parameters["components"]) ** 2, axis=-1)


def initialize(X, n_components, random):
    return {"components": X[random.choice(len(X), n_components, replace=False)]}


SHORT = {"max_iter": 2, "random_state": 0}
SIMILAR_SIZES = [
    MaximalCauses(3, noise="poisson", **SHORT),
    NoisyOrCauses(3, **SHORT),
    SoftmaxNetwork(3, temperature=2.0, **SHORT),
    KMeans(3, **SHORT),
    MixtureOfGaussians(3, **SHORT),
    FactorAnalysis(2, **SHORT),
    PrincipalComponents(2),
    SparseCoding(3, batch_size=16, **SHORT),
    SparseCoding(3, **SHORT),  # one batch of all rows
    IndependentComponents(9, **SHORT),
    HelmholtzMachine(3, **SHORT),
    EnergyComponents(3, **SHORT),
    SpikeAndSlabCauses(3, **SHORT),
    TruncatedAutoencoder(3, batch_size=16, **SHORT),
    TruncatedAutoencoder(3, **SHORT),
    OwnCauses(log_joint, initialize, 3, **SHORT),
]


@pytest.mark.parametrize("model", SIMILAR_SIZES, ids=lambda model: type(model).__name__)
def test_similar_numbers_of_rows_share_programs(model):
    """Another fold of a cross-validation and another batch of a stream compile nothing."""
    binary = isinstance(model, HelmholtzMachine | NoisyOrCauses)
    noise = {"noise": "bernoulli", "value": 0.8} if binary else {"noise": "poisson"}
    X = make_bars(70, size=3, random_state=0, **noise).data
    compiled = []

    def use(n_rows, n_more):
        model.fit(X[:n_rows])
        for method in (model.transform, model.score_samples, model.partial_fit):
            method(X[n_rows : n_rows + n_more])

    use(40, 30)
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **about: compiled.append(about.get("fun_name")) if "backend_compile" in event else None
    )
    try:
        use(39, 29)
        use(37, 29)
        assert compiled == []
        jax.jit(lambda x: x + 1)(np.ones(7))
        assert compiled  # the listener works
    finally:
        jax.monitoring.clear_event_listeners()


# Models, and the numbers of programs that their first fits compile.
FIRST_FITS = [
    (MixtureOfGaussians(2, max_iter=3, random_state=0), 3),
    (FactorAnalysis(2, max_iter=3, random_state=0), 4),
    (PrincipalComponents(2), 1),
    (IndependentComponents(3, max_iter=3, random_state=0), 3),
]


@pytest.mark.parametrize(("model", "most"), FIRST_FITS, ids=[type(model).__name__ for model, _ in FIRST_FITS])
def test_first_fits_compile_few_programs(model, most):
    """What is small is computed by NumPy; in JAX, each operation outside of a program would be a program of its own."""
    X = np.random.RandomState(0).uniform(size=(40, 6))
    jax.clear_caches()
    compiled = []

    def listen(event, duration, **details):
        if "backend_compile" in event:
            compiled.append(details.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        model.fit(X)
    finally:
        jax.monitoring.clear_event_listeners()
    assert 0 < len(compiled) <= most, compiled


def test_memory_does_not_grow_with_states_times_features():
    """2^14 states of 2000 rows in 100 dimensions: 26 GB for all three, 0.8 GB for states and rows without blocks."""
    code = (
        "import numpy as np\n"
        "from multicause import LinearCauses\n"
        "from multicause.engines import Local\n"
        "X = np.random.RandomState(0).normal(size=(2000, 100))\n"
        "LinearCauses(14, max_iter=2, annealing=None, engine=Local(memory_budget='256MiB')).fit(X)\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 800_000
