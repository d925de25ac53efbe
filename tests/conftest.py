"""Options and fixtures of all tests.

Statistical tests and laws take a ``seed``. By default it is 0; ``pytest --seeds 0-99`` runs them for a hundred seeds,
all of which must pass.
"""

import ctypes
import gc
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from importlib.metadata import version

import pytest

COMPILED = "JAX_COMPILATION_CACHE_DIR"
# Age in seconds at which compiled programs are removed.
KEEP_PROGRAMS = 14 * 24 * 3600
# Codes of settings of C's mallopt, and their values.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = (-1, 2**30), (-2, 2**26), (-3, 2**30)


def compile_quickly():
    """Have JAX compile in a quarter of the time, in this process and those that tests start.

    Most programs of tests run for a moment, and compilation is most of what tests cost. Without optimization, with
    XLA's older code generator for fused operations, and with each program in one piece instead of pieces for many
    threads, results are the same but for rounding. A name that XLA does not know would end the process, so the flags
    are given to versions that are known to have them. Programs of tests that are ``optimized`` are so at the lowest
    level: they compile in less time, and run as fast as at the highest one.
    """
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    if version("jaxlib").startswith(("0.10.", "0.11.")):
        flags = (
            "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
            " --xla_backend_optimization_level=1"
        )
        given = os.environ.get("XLA_FLAGS", "")
        # Workers inherit them. Given twice, they would be other flags, with which no compiled program is found again.
        if flags not in given:
            os.environ["XLA_FLAGS"] = f"{given} {flags}".strip()


compile_quickly()  # before anything imports JAX


def keep_freed_memory():
    """Keep memory that is freed: compilations would begin with thousands of page faults, 5 % of the time of tests."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    for setting, value in TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD:
        if mallopt is not None:
            mallopt(setting, value)


keep_freed_memory()


def pytest_configure(config):
    """Processes and runs share what they compile: later runs take less time than the first.

    Programs are kept in pytest's cache, which ``pytest --cache-clear`` empties. They are found by what they compute,
    by versions and by flags, so that a change of the code never meets a program of the code before.
    """
    if COMPILED in os.environ:
        return
    if hasattr(config, "cache"):
        folder = config.cache.mkdir("compiled")
        remove_old_programs(folder)
    else:  # pytest -p no:cacheprovider
        temporary = tempfile.TemporaryDirectory(prefix="multicause-tests-")
        config.add_cleanup(temporary.cleanup)
        folder = temporary.name
    os.environ[COMPILED] = str(folder)
    # Smaller programs take less time to compile than to write and to read.
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.02"
    config.add_cleanup(lambda: os.environ.pop(COMPILED, None))


def remove_old_programs(folder):
    """Remove programs that were compiled long ago: code and versions have probably changed since."""
    oldest = time.time() - KEEP_PROGRAMS
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another run may remove it at the same time
            if path.stat().st_mtime < oldest:
                path.unlink()


def pytest_collection_finish():
    """Collect garbage less often: the objects of imports and collection stay, and tracing makes thousands of others."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


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


@contextmanager
def optimizations():
    """For what is made once for all tests of a file: as ``optimized``."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def optimized():
    """For programs that run for longer than it takes to compile them well."""
    with optimizations():
        yield


@pytest.fixture
def few_block_sizes(monkeypatch):
    """Fill blocks up to 256 rows, so that tests with many small tables share programs.

    A single row is a block of 16, so that it runs through another program than all of them.
    """
    from multicause.engines import blocks

    rounded = blocks.rounded
    monkeypatch.setattr(
        blocks, "rounded", lambda size, *, up: max(rounded(size, up=up), 16 if size == 1 else 256) if up else size
    )
