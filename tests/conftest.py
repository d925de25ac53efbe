"""Options and fixtures of all tests.

Statistical tests and laws take a ``seed``. By default it is 0; ``pytest --seeds 0-99`` runs them for a hundred seeds,
all of which must pass.
"""

import os
import tempfile

import pytest

COMPILED = "JAX_COMPILATION_CACHE_DIR"


def pytest_configure(config):
    """Processes of one run share what they compile: each program once, not once for each process and file."""
    if COMPILED not in os.environ:
        config.compiled = tempfile.TemporaryDirectory(prefix="multicause-tests-")
        os.environ[COMPILED] = config.compiled.name
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"


def pytest_unconfigure(config):
    if hasattr(config, "compiled"):
        del os.environ[COMPILED]
        config.compiled.cleanup()


def pytest_addoption(parser):
    parser.addoption("--seeds", default="0", help="seeds of the tests that take one: a number or a range such as 0-99")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


@pytest.fixture(autouse=True)
def _no_global_double_precision():
    """The library must leave the user's own JAX settings as they are."""
    import jax

    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Programs of one file are of no use to the next, and thousands of them exhaust the memory maps of a process."""
    import jax

    yield
    jax.clear_caches()


@pytest.fixture
def compiled_quickly():
    """For programs that run for a moment: they compile in half the time, and run more slowly."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
