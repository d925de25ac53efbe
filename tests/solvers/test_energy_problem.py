"""The state of an energy model that files hold, and its settings."""

import numpy as np
import pytest

from multicause import EnergyComponents
from multicause.solvers.energy_problem import FormerUpdateState, layer_sizes
from tests.solvers.mixtures import mixture

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_files_of_version_0_1_have_velocities():
    X = mixture(200)[0]
    model = EnergyComponents(sampler="exact", max_iter=20, random_state=0).fit(X)
    state, now = model._state(), model._problem.updates
    (filters, background), settings = now.optimizer, model.get_params(deep=False)
    velocity = now.parameters._replace(filters=filters, background=background)
    state["course"] = FormerUpdateState(now.parameters, velocity, *now[2:])
    del state["updates"], state["optimizer"], state["schedule"]
    former = EnergyComponents(**settings)
    former.n_features_in_ = 4
    former._restore(state)
    np.testing.assert_array_equal(former._problem.updates.optimizer[0], filters)
    np.testing.assert_array_equal(former.transform(X), model.transform(X))


def test_sizes_of_further_layers():
    assert layer_sizes([3, np.int64(2)]) == (3, 2)
    with pytest.raises(ValueError, match=r"One layer of 20 units is written \(20,\)"):
        layer_sizes((2.5,))
