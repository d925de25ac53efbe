"""Callbacks, checkpoints and saved models of fits on a Dask cluster."""

import numpy as np
import pytest
from sklearn.base import clone

from multicause import LinearCauses, load
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.engines import Dask, Local
from tests.engines.conftest import PLAIN


class Progress(IterationCallback):
    def __init__(self):
        self.seen = []

    def after(self, iteration):
        self.seen.append(iteration.number)


def test_callbacks_follow_a_fit_on_a_cluster(client, chunked):
    progress = Progress()
    LinearCauses(4, **PLAIN).set_callbacks(progress).fit(chunked)
    assert progress.seen == [1, 2, 3, 4]


def test_a_fit_on_a_cluster_is_resumed(client, chunked, tmp_path):
    model = LinearCauses(4, **PLAIN).set_callbacks(Checkpoint(tmp_path, every=1))
    whole = model.fit(chunked)
    for path in sorted(tmp_path.glob("*.checkpoint"))[1:]:
        path.unlink()
    again = clone(model).fit(chunked, resume=tmp_path)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_a_fit_of_this_process_is_resumed_on_a_cluster_and_the_other_way_round(client, rows, tmp_path):
    for number, engines in enumerate([(Local(), Dask(client)), (Dask(client), Local())]):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = LinearCauses(4, engine=engines[0], **PLAIN).set_callbacks(Checkpoint(folder, every=1))
        whole = model.fit(rows)
        for path in sorted(folder.glob("*.checkpoint"))[1:]:
            path.unlink()
        again = clone(model).set_params(engine=engines[1]).fit(rows, resume=folder)
        np.testing.assert_allclose(again.components_, whole.components_, rtol=1e-4, atol=1e-4)
        with pytest.raises(ValueError, match="data"):
            clone(model).set_params(engine=engines[1]).fit(rows[::-1], resume=folder)


def test_an_engine_can_be_cloned_and_saved(client, chunked, tmp_path):
    model = LinearCauses(3, engine=Dask(client), **PLAIN)
    assert clone(model).engine.scheduler is client
    model.fit(chunked).save(tmp_path / "model.mca")
    assert load(tmp_path / "model.mca").engine.scheduler == client.scheduler.address
