"""Preparation of rows before learning (centring, standardizing, whitening), and models that include it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

# Share of the mean variance that is added to the variance of every principal axis before whitening, so that axes which
# hold little but rounding errors are not amplified.
EPSILON = 1e-3
# Smaller standard deviations, relative to the largest absolute value of a column, are those of a constant column.
CONSTANT = 1e-12
# Methods of estimators that take rows and return no rows.
OF_ROWS = frozenset(
    {
        "energy",
        "free_energy",
        "is_explained",
        "predict",
        "predict_proba",
        "recognize",
        "score",
        "score_samples",
        "score_samples_under",
        "score_single_causes",
        "transform",
    }
)


@dataclass(frozen=True)
class RowPreparation:
    """Preparation of rows: each row loses its mean, then the columns are shifted, and scaled or whitened.

    ``scale`` and ``inverse`` are vectors (D,) for standardized columns and matrices (D, D) for whitened ones.
    """

    center: bool = False
    shift: np.ndarray | None = None
    scale: np.ndarray | None = None
    inverse: np.ndarray | None = None

    @property
    def changes_rows(self) -> bool:
        """Return whether rows are changed at all."""
        return self.center or self.shift is not None

    def levels(self, rows: np.ndarray) -> np.ndarray:
        """Return what each row loses, the mean of its observed values, as (n, 1); zeros without centring."""
        if not self.center:
            return np.zeros((len(rows), 1), dtype=rows.dtype)
        observed = ~np.isnan(rows)
        count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
        return (np.nansum(rows, axis=1, keepdims=True, dtype=float) / count).astype(rows.dtype)

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """Return the prepared rows, in the dtype of the given ones."""
        if self.center:
            rows = rows - self.levels(rows)
        if self.shift is None or self.scale is None:
            return rows
        return _times(rows - self.shift, self.scale).astype(rows.dtype)

    def undo(self, prepared: np.ndarray, levels: np.ndarray | float = 0.0) -> np.ndarray:
        """Return prepared rows in the units of the data; ``levels`` are the means that rows had lost."""
        prepared = np.asarray(prepared)
        if self.shift is not None and self.inverse is not None:
            prepared = (_times(prepared, self.inverse) + self.shift).astype(prepared.dtype)
        return prepared + levels if self.center else prepared

    def components(self, components: np.ndarray) -> np.ndarray:
        """Return components in the units of the data."""
        return components if self.inverse is None else _times(components, self.inverse).astype(components.dtype)

    def save(self, path: Path) -> None:
        """Write the arrays as a safetensors file, if there are any."""
        if self.shift is not None and self.scale is not None and self.inverse is not None:
            from safetensors.numpy import save_file

            save_file({"shift": self.shift, "scale": self.scale, "inverse": self.inverse}, path)

    @classmethod
    def load(cls, path: Path, *, center: bool) -> RowPreparation:
        """Read a preparation; without a file it has no arrays."""
        if not path.is_file():
            return cls(center)
        from safetensors.numpy import load_file

        return cls(center, **load_file(path))


def fit_preparation(rows: np.ndarray, *, center: bool, standardize: bool, whiten: bool) -> RowPreparation:
    """Return the preparation with the means and (co)variances of some rows."""
    if standardize and whiten:
        raise ValueError("Whitened columns are standardized, too; give either --standardize or --whiten.")
    first = RowPreparation(center)
    if not (standardize or whiten):
        return first
    rows = first.apply(rows)
    if whiten:
        from multicause.preprocessing import Whitening

        if np.isnan(rows).any():
            raise ValueError("--whiten needs complete rows, but some values are missing; use --standardize.")
        found = Whitening(epsilon=EPSILON).fit(rows)
        return RowPreparation(center, found.mean_, found.matrix_, found.inverse_matrix_)
    shift, spread = np.nanmean(rows, axis=0, dtype=float), np.nanstd(rows, axis=0, dtype=float)
    # A constant column keeps its unit; it is zero afterwards.
    spread = np.where(spread > CONSTANT * np.abs(shift), spread, 1.0)
    return RowPreparation(center, *(values.astype(rows.dtype) for values in (shift, 1 / spread, spread)))


def _times(rows: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return rows * factor if factor.ndim == 1 else rows @ factor


class PreparedModel:
    """Fitted model together with the preparation of its rows: takes and returns rows in the units of the data.

    Commands and reports have all models in this form, also those whose preparation changes nothing.
    Everything that is not defined here is that of the estimator; its methods ``OF_ROWS`` get prepared rows, so that
    scores are those of prepared rows. A component is in the units of the data, and data generated from causes have row
    means of zero if rows are centred.
    """

    def __init__(self, estimator: Any, preparation: RowPreparation) -> None:
        self.estimator, self.preparation = estimator, preparation
        # hasattr(model, "reconstruct") must be False if the estimator has no such method. Where rows are not changed,
        # the methods are those of the estimator, which also take rows in files.
        for name in ("reconstruct", "impute"):
            if preparation.changes_rows and hasattr(estimator, name):
                setattr(self, name, getattr(self, f"_{name}"))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.__dict__["estimator"], name)
        return partial(self._of_prepared_rows, attribute) if name in OF_ROWS else attribute

    def _of_prepared_rows(self, method: Callable[..., Any], X: Any, *arguments: Any, **settings: Any) -> Any:
        return method(self.preparation.apply(X), *arguments, **settings)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def components_(self) -> np.ndarray:
        """Return the components in the units of the data: (H, D)."""
        return self.preparation.components(np.asarray(self.estimator.components_))

    @property
    def noise_variance_(self) -> Any:
        """Return the variance of the noise in the units of the data, on average over columns if they are scaled."""
        variance, inverse = self.estimator.noise_variance_, self.preparation.inverse
        if inverse is None:
            return variance
        if inverse.ndim == 1:
            return float(np.mean(variance * inverse**2))
        return float(np.sum(np.broadcast_to(variance, len(inverse))[:, None] * inverse**2) / inverse.shape[1])

    def row_levels(self, X: np.ndarray) -> np.ndarray:
        """Return the mean of each row, which the model does not explain, or zeros: (n, 1)."""
        return self.preparation.levels(X)

    def inverse_transform(self, causes: np.ndarray) -> np.ndarray:
        """Return the data that causes generate."""
        return self.preparation.undo(self.estimator.inverse_transform(causes))

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their causes."""
        rows, causes = self.estimator.sample(n_samples, random_state=random_state)
        return self.preparation.undo(np.asarray(rows)), causes

    def _reconstruct(self, X: np.ndarray) -> np.ndarray:
        return self.preparation.undo(self.estimator.reconstruct(self.preparation.apply(X)), self.row_levels(X))

    def _impute(self, X: np.ndarray) -> np.ndarray:
        found = self.preparation.undo(self.estimator.impute(self.preparation.apply(X)), self.row_levels(X))
        return np.where(np.isnan(X), found, X)
