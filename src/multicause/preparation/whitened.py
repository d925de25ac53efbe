"""Whitening as preparation of a model: rows with unit variance in all directions that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from multicause.engines.base import Data
from multicause.preparation.base import Preparation, PreparationRecord
from multicause.preparation.moments import check_variation, covariance_of
from multicause.preparation.whitening import whitening_matrices


class Whitened(Preparation):
    """Subtract the mean, and map rows on principal axes of unit variance; ``n_directions=None`` keeps all of them."""

    needs_complete = "whitens data, which takes complete rows"

    def __init__(self, n_directions: int | None = None) -> None:
        self.n_directions = n_directions

    def measure(self, data: Data) -> PreparationRecord:
        """Return the mean and the whitening matrices."""
        if self.n_directions is not None and self.n_directions > data.n_features:
            raise ValueError(
                "There cannot be more independent components than features: n_components="
                f"{self.n_directions}, but X has {data.n_features} features. Lower n_components, or use SparseCoding."
            )
        check_variation(data)
        _, mean, covariance = covariance_of(data)
        forward, backward = whitening_matrices(
            covariance,
            "pca",
            self.n_directions,
            remedy="lower n_components to at most {rank}",
            precision=float(np.finfo(data.dtype).eps),
        )
        return {"mean": mean, "forward": forward, "backward": backward}

    @staticmethod
    def apply(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows as coordinates that are uncorrelated and have variance one."""
        return (rows - record["mean"].astype(rows.dtype)) @ record["forward"].T.astype(rows.dtype)

    @staticmethod
    def undo(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows in the space of X; directions that were not kept have their mean."""
        return rows @ record["backward"].T.astype(rows.dtype) + record["mean"].astype(rows.dtype)

    def components_of(self, record: PreparationRecord, components: np.ndarray) -> np.ndarray:
        """Return components, which are directions, in the space of X."""
        return (components.astype(float) @ record["backward"].T).astype(components.dtype)

    def attributes(self, record: PreparationRecord, dtype: np.dtype) -> dict[str, Any]:
        """Return the mean of the data."""
        return {"mean_": record["mean"].astype(dtype)}
