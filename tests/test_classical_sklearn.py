"""scikit-learn's own checks on the classical models."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from multicause import (
    FactorAnalysis,
    IndependentComponents,
    KMeans,
    MixtureOfGaussians,
    PrincipalComponents,
    SparseCoding,
)

pytestmark = pytest.mark.filterwarnings("ignore")
# The law of weights compares both from one start.
REASON = "starts are random rows: other ones, if rows are repeated"
STARTS = {"check_sample_weight_equivalence_on_dense_data": REASON}
ESTIMATORS = [
    (MixtureOfGaussians(2, max_iter=3, random_state=0), STARTS),
    (KMeans(2, max_iter=3, random_state=0), STARTS),
    (FactorAnalysis(1, max_iter=3, random_state=0), {}),
    (PrincipalComponents(1, max_iter=3, random_state=0), {}),
    (SparseCoding(2, max_iter=2, tol=0, random_state=0), {}),
    (IndependentComponents(1, max_iter=3, random_state=0), {}),
]


@pytest.mark.parametrize(("estimator", "failures"), ESTIMATORS, ids=lambda e: type(e).__name__)
def test_scikit_learns_own_checks(estimator, failures):
    """All checks run and pass, but for the one that needs SciPy's experimental array API to be switched on."""
    results = check_estimator(estimator, on_skip=None, on_fail="raise", expected_failed_checks=failures)
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input", *failures}
    assert len(results) >= 54
