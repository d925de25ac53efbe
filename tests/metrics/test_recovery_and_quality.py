"""Recovery of causes, the Amari distance, and what reconstructions explain."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from multicause import EnergyComponents, MaximalCauses, PrincipalComponents
from multicause.datasets import make_bars
from multicause.metrics import amari_distance, reconstruction_quality, recovered_causes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BARS = make_bars(200, size=3, noise="poisson", random_state=0)


def with_components(W):
    """A model that keeps the given components."""
    settings = {"noise": "poisson", "learn": ("activity",), "annealing": None, "max_iter": 1, "random_state": 0}
    return MaximalCauses(len(W), init=W, **settings).fit(BARS.data)


def test_true_causes_in_any_order_are_found(seed):
    order = np.random.RandomState(seed).permutation(6)
    found = recovered_causes(with_components(BARS.causes[order]), BARS.causes)
    assert found.injective
    assert found.all_found
    assert found.n_found == 6
    assert found.mean_absolute_error == 0
    np.testing.assert_array_equal(order[found.mapping], np.arange(6))


def test_surplus_components_do_no_harm():
    W = np.vstack([np.full((1, 9), 3.0), BARS.causes])
    assert recovered_causes(with_components(W), BARS.causes).all_found


def test_a_double_cause_is_no_recovery():
    """MCA08 figure 7: two fields on one cause, and one on a mixture of two."""
    W = BARS.causes.copy()
    W[0] = W[1]
    W[2] = np.maximum(BARS.causes[0], BARS.causes[2]) * 0.6
    found = recovered_causes(with_components(W), BARS.causes)
    assert not found.injective
    assert not found.all_found
    assert found.n_found == 4


def test_a_distorted_cause_is_injective_but_not_found():
    W = BARS.causes.copy()
    W[0] = W[0] + 1.5  # each pixel 1.5 too bright: more than a tenth of the peak of 10
    found = recovered_causes(with_components(W), BARS.causes)
    assert found.injective
    assert not found.all_found
    assert found.n_found == 5
    assert found.errors[0] == pytest.approx(1.5)
    assert found.mean_absolute_error == pytest.approx(1.5 / 6)


def test_wrong_causes():
    with pytest.raises(ValueError, match=r"shape \(n_causes, 9\), one row per true cause; got \(6, 8\)"):
        recovered_causes(with_components(BARS.causes), BARS.causes[:, :8])


def test_amari_distance_is_zero_up_to_order_and_scale(seed):
    random = np.random.RandomState(seed)
    B = random.normal(size=(5, 5))
    A = np.diag(random.uniform(0.5, 2, 5) * random.choice([-1, 1], 5)) @ B[random.permutation(5)]
    assert amari_distance(A, B) == pytest.approx(0, abs=1e-9)
    assert amari_distance(A + 0.1, B) > 0.01


def test_amari_distance_by_hand():
    """P = [[1, ½], [0, 1]]: rows give 1½ + 1, columns 1 + 1½, less 2·2."""
    assert amari_distance([[1, 0.5], [0, 1]], np.eye(2)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("A", "text"),
    [(np.ones((2, 3)), "two square matrices"), (np.ones((2, 2)), "singular"), (np.full((2, 2), np.nan), "finite")],
)
def test_amari_distance_errors(A, text):
    with pytest.raises(ValueError, match=text):
        amari_distance(A, A)


@pytest.mark.parametrize("block_values", [10_000, 7 * 9])
def test_quality_of_reconstructions_is_that_of_scikit_learn(block_values, monkeypatch):
    """Weighted, with and without the mean of each row, in one block or in many of one size."""
    monkeypatch.setattr("multicause.metrics.reconstruction.BLOCK_VALUES", block_values)
    X, weights = BARS.data + 50, np.random.RandomState(0).uniform(size=200)
    model = PrincipalComponents(2, random_state=0).fit(X)
    again, sizes = model.reconstruct(X), []
    reconstruct = model.reconstruct
    monkeypatch.setattr(model, "reconstruct", lambda rows: (sizes.append(len(rows)), reconstruct(rows))[1])
    for own in (None, weights):
        found = reconstruction_quality(model, X, sample_weight=own)
        settings = {"sample_weight": own, "multioutput": "variance_weighted"}
        assert found.r2 == pytest.approx(r2_score(X, again, **settings), rel=1e-9)
        forms = [rows - rows.mean(axis=1, keepdims=True) for rows in (X, again)]
        assert found.r2_without_row_means == pytest.approx(r2_score(*forms, **settings), rel=1e-9)
    assert set(sizes) == {min(200, block_values // 9)}


def test_no_variance_and_no_reconstruction():
    X = np.random.RandomState(0).normal(size=(50, 1))
    found = reconstruction_quality(PrincipalComponents(1, random_state=0).fit(X), X)
    assert found.r2 == pytest.approx(1)
    assert np.isnan(found.r2_without_row_means)  # rows of one value have no form
    flat = np.repeat(X, 3, axis=1)
    assert np.isnan(reconstruction_quality(PrincipalComponents(1, random_state=0).fit(flat), flat)[1])
    energy = EnergyComponents(max_iter=1, random_state=0).fit(X)
    with pytest.raises(
        TypeError, match="reconstruction_quality needs a model with reconstruct; EnergyComponents has none"
    ):
        reconstruction_quality(energy, X)
