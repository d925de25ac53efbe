"""Trials of models that are not causal; those of causal models are compared with single fits elsewhere."""

import numpy as np
import pytest

from multicause import EnergyComponents
from multicause.estimators.trials import fit_trials


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_energy_models_are_fitted_as_alone():
    X = np.random.RandomState(0).laplace(size=(2, 40, 3))
    model = EnergyComponents(3, max_iter=4)
    for number, trial in enumerate(fit_trials(model, X, random_state=5)):
        alone = EnergyComponents(3, max_iter=4, random_state=5 + number).fit(X[number])
        np.testing.assert_allclose(trial.components_, alone.components_, rtol=1e-6)
