"""Recovery of the true causes by a fitted model."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

# A cause counts as found if the error of its component is below this fraction of the causes' peak (ET10 appendix E
# requires 1.0 for bars of value 10).
LARGEST_ERROR = 0.1


class Recovery(NamedTuple):
    """Comparison of the components of a model with the true causes."""

    mapping: np.ndarray  # (n_causes,) the component that represents each true cause
    errors: np.ndarray  # (n_causes,) mean absolute error of that component
    injective: bool  # whether each true cause has its own component (MCA08 §6.5)
    all_found: bool  # injective, and each error below a tenth of the causes' peak (ET10 appendix E)
    n_found: int  # number of true causes with their own component and such an error
    mean_absolute_error: float  # over all causes and dimensions


def recovered_causes(model: Any, causes: ArrayLike) -> Recovery:
    """Present each true cause alone to a fitted model, and compare it with the cause that the model infers.

    Parameters
    ----------
    model : fitted estimator
        A causal model of this library.
    causes : array-like of shape (n_causes, n_features)
        True causes, for example ``make_bars(...).causes``.
    """
    check_is_fitted(model)
    causes = np.asarray(causes, dtype=float)
    components = np.asarray(model.components_)
    if causes.ndim != 2 or causes.shape[1] != components.shape[1]:
        raise ValueError(
            f"causes must have shape (n_causes, {components.shape[1]}), one row per true cause; got {causes.shape}."
        )
    with warnings.catch_warnings():
        # Causes are rows of the model's features, whatever their names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        mapping = np.argmax(model.score_single_causes(model.typical_rows(causes)), axis=1)
    errors = np.abs(components[mapping] - causes).mean(axis=1)
    good = errors < LARGEST_ERROR * np.abs(causes).max()
    injective = len(set(mapping.tolist())) == len(causes)
    return Recovery(
        mapping=mapping,
        errors=errors,
        injective=injective,
        all_found=bool(injective and good.all()),
        n_found=len(set(mapping[good].tolist())),
        mean_absolute_error=float(errors.mean()),
    )
