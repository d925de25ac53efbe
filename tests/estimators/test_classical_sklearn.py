"""scikit-learn's own checks on the classical models."""

import numpy as np
import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from multicause import (
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    MixtureOfGaussians,
    MixtureOfPoissons,
    PrincipalComponents,
    SparseCoding,
    SpikeAndSlabCauses,
    TruncatedAutoencoder,
)

pytestmark = pytest.mark.filterwarnings("ignore")
# The law of weights compares both from one start.
REASON = "starts are random rows: other ones, if rows are repeated"
WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
STARTS = dict.fromkeys(WEIGHTS, REASON)
# These checks ask every model with predict_proba for the classes of a classifier. Sparse rows of mixtures are tested in
# tests/engines/test_sparse_source.py.
MIXTURES = STARTS | dict.fromkeys(
    ("check_estimator_sparse_matrix", "check_estimator_sparse_array"), "clusters are not classes"
)
BATCHES = dict.fromkeys(WEIGHTS, "batches are random: other ones, if rows are repeated")


class CutHelmholtzMachine(HelmholtzMachine):
    """A Helmholtz machine that cuts the checks' data at their mean: it takes binary data alone."""

    def _validate_rows(self, X, *, reset):
        rows = super()._validate_rows(X, reset=reset)
        if reset:
            self.threshold_ = np.nanmean(rows)
        return np.where(np.isnan(rows) | (rows < 0), rows, rows > self.threshold_).astype(rows.dtype)


ESTIMATORS = [
    (CutHelmholtzMachine(2, max_iter=1, tol=0, random_state=0), BATCHES),
    (MixtureOfGaussians(2, max_iter=3, random_state=0), MIXTURES),
    (MixtureOfPoissons(2, max_iter=3, random_state=0), MIXTURES),
    (KMeans(2, max_iter=3, random_state=0), MIXTURES),
    (FactorAnalysis(1, max_iter=3, random_state=0), {}),
    (PrincipalComponents(1), {}),
    (SparseCoding(2, max_iter=2, tol=0, random_state=0), {}),
    (SpikeAndSlabCauses(2, max_iter=3, random_state=0), {}),
    (IndependentComponents(1, max_iter=3, random_state=0), {}),
    (TruncatedAutoencoder(2, max_iter=2, random_state=0), STARTS),
]


@pytest.mark.parametrize(("estimator", "failures"), ESTIMATORS, ids=lambda e: type(e).__name__)
def test_scikit_learns_own_checks(estimator, failures, few_block_sizes):
    """All checks run and pass, but for the one that needs SciPy's experimental array API to be switched on."""
    results = check_estimator(estimator, on_skip=None, on_fail="raise", expected_failed_checks=failures)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input", *failures}
    # The check that NaN is refused is not for models that allow it.
    assert len(results) >= (53 if get_tags(estimator).input_tags.allow_nan else 54)
