"""Centring: rows and components relative to the mean of the data."""

from __future__ import annotations

import numpy as np

from multicause.engines.base import Data
from multicause.preparation.base import Preparation, PreparationRecord
from multicause.preparation.moments import check_variation


class Centred(Preparation):
    """Subtract the mean of the data from rows and components.

    Squared distances are computed in expanded form, where a large offset would cancel digits.
    """

    def measure(self, data: Data) -> PreparationRecord:
        """Return the mean of the observed values of each feature, as the record ``origin``."""
        check_variation(data)
        return {"origin": data.overview.mean.astype(data.dtype)}

    @staticmethod
    def apply(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows minus the mean."""
        return rows - record["origin"].astype(rows.dtype, copy=False)

    @staticmethod
    def undo(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows plus the mean."""
        return rows + record["origin"].astype(rows.dtype, copy=False)

    def components_of(self, record: PreparationRecord, components: np.ndarray) -> np.ndarray:
        """Return components, which are points like the rows, plus the mean."""
        return self.undo(record, components)

    def prepare_components(self, record: PreparationRecord, components: np.ndarray) -> np.ndarray:
        """Return components minus the mean."""
        return components - record["origin"]
