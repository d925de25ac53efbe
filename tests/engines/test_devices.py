"""Rows spread over several devices: simulated ones of the CPU, in a process of their own."""

import os
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

from multicause import LinearCauses
from multicause.engines import Local

SCRIPT = """
    import sys
    import warnings
    from pathlib import Path

    import jax
    import numpy as np

    from sklearn.base import clone

    from multicause import LinearCauses, MaximalCauses, SparseCoding, load
    from multicause.callbacks import Checkpoint
    from multicause.datasets import make_bars
    from multicause.engines import Local
    from multicause.engines.streamed import StreamedData
    from multicause.posteriors import Evolved, Preselected

    warnings.simplefilter("ignore")
    assert len(jax.devices()) == 3
    folder = Path(sys.argv[1])
    X = make_bars(1001, noise="poisson", random_state=0).data.astype(np.float32)
    plain = {"annealing": None, "repair": False, "max_iter": 3, "tol": 0, "random_state": 0}
    weights = np.random.RandomState(0).uniform(0, 2, len(X))
    models = [
        LinearCauses(4, **plain),
        MaximalCauses(4, noise="poisson", posterior=Preselected(3, 2, keep=0.8), **plain),  # with a data cut
        LinearCauses(4, posterior=Evolved(6), **plain),  # with states that are kept with the rows
    ]
    compiled = []

    def note(event, duration, **about):
        if event.endswith("backend_compile_duration"):
            compiled.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(note)
    LinearCauses(4, engine=Local(devices="all"), **plain).fit(X, sample_weight=weights)
    assert compiled.count("jit(_run_steps)") == 1  # not another time for parameters that are on all devices
    for model in models:
        one = model.set_params(engine=Local()).fit(X, sample_weight=weights)
        bounds, components = one.lower_bounds_, one.components_.copy()
        causes = one.transform(X)
        for engine in (Local(devices="all"), Local(devices=tuple(jax.devices()[1:]), memory_budget="400KiB")):
            many = model.set_params(engine=engine).fit(X, sample_weight=weights)
            np.testing.assert_allclose(many.lower_bounds_, bounds, rtol=1e-5)
            np.testing.assert_allclose(many.components_, components, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(many.transform(X), causes, atol=2e-3)

    # Rows that are read from a file go to the devices in turn.
    np.save(folder / "rows.npy", np.tile(X, (20, 1)))
    stored = np.load(folder / "rows.npy", mmap_mode="r")
    model = MaximalCauses(4, noise="poisson", posterior=Preselected(3, 2, keep=0.8), **plain)
    used = set()
    read = StreamedData._block

    def noted(data, number):
        block = read(data, number)
        used.update(block.rows.devices())
        return block

    StreamedData._block = noted
    one, many = (
        clone(model).set_params(engine=Local(memory_budget="1MiB", devices=devices)).fit(stored)
        for devices in (None, "all")
    )
    assert used == set(jax.devices())
    np.testing.assert_allclose(many.lower_bounds_, one.lower_bounds_, rtol=1e-6)
    np.testing.assert_allclose(many.components_, one.components_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(many.transform(stored), one.transform(stored), atol=1e-3)
    batches = SparseCoding(3, max_iter=1, tol=0, random_state=0)
    one, many = (
        clone(batches).set_params(engine=Local(memory_budget="1MiB", devices=devices)).fit(stored)
        for devices in (None, 2)
    )
    np.testing.assert_allclose(many.components_, one.components_, rtol=1e-4, atol=1e-4)
    last = jax.devices()[2:]
    found = model.set_params(engine=Local(devices=tuple(last))).fit(X)
    np.testing.assert_allclose(
        found.components_, model.set_params(engine=Local()).fit(X).components_, rtol=1e-4, atol=1e-4
    )

    # A checkpoint of three devices is taken up by two.
    model = LinearCauses(4, engine=Local(devices=3), **plain).set_callbacks(Checkpoint(folder, every=1))
    whole = model.fit(X)
    for path in sorted(folder.glob("*.checkpoint"))[1:]:
        path.unlink()
    rest = LinearCauses(4, engine=Local(devices=2), **plain).fit(X, resume=folder)
    np.testing.assert_allclose(rest.components_, whole.components_, rtol=1e-4, atol=1e-4)
    rest.set_params(engine=Local(devices=tuple(jax.devices()[:2]))).save(folder / "model.mca")
    assert load(folder / "model.mca").engine.devices == 2
    print("equal")
"""


def test_several_devices_give_the_result_of_one(tmp_path):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=3"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "equal" in run.stdout


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (99, "at most the number of devices"),
        (0, "devices=0 must be at least 1"),
        ("gpu7", "'all', a number, devices of JAX, or None; got 'gpu7'"),
        (("a device that is gone",), "a device that is gone cannot be used in this process"),
    ],
)
def test_devices_that_do_not_exist(devices, message):
    with pytest.raises(ValueError, match=message):
        LinearCauses(2, engine=Local(devices=devices)).fit(np.eye(4))


def test_one_device_needs_no_mesh():
    assert Local().mesh() is None
    assert Local(devices=1).mesh() is None
    assert Local(devices=(jax.devices()[0],)).mesh() is None
