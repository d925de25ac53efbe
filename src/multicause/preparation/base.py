"""Interface of preparations: how rows are changed before a model learns from them, and how results are changed back.

A preparation holds settings. What it computes from the training data is a *record*, a dictionary of arrays, which is
saved with the model. Its methods are functions of this record, so that other processes need no estimator.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from multicause.engines.base import Data
from multicause.model import Model, Statistics
from multicause.records import Parameters

PreparationRecord = dict[str, np.ndarray]


class Learned(NamedTuple):
    """Model, parameters, statistics of all data (if they are known) and record at the end of learning."""

    model: Model
    parameters: Parameters
    statistics: Statistics | None
    record: PreparationRecord


class Preparation:
    """Base class of preparations, and the one that changes nothing."""

    #: Why no value may be missing, as part of an error message; empty if values may be missing.
    needs_complete: str = ""

    def measure(self, data: Data) -> PreparationRecord:
        """Return the record of the training data."""
        return {}

    @staticmethod
    def apply(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows as the model learns from them."""
        return rows

    @staticmethod
    def undo(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows in the space of X, the inverse of :meth:`apply`."""
        return rows

    def transform(self, record: PreparationRecord, data: Data) -> Data:
        """Return data whose rows are as the model uses them."""
        return data if type(self).apply is Preparation.apply else data.transformed(partial(self.apply, record))

    def prepare(self, record: PreparationRecord, data: Data) -> Data:
        """Return the data to learn from, given the record of these data."""
        return self.transform(record, data)

    def prepare_batch(
        self, record: PreparationRecord | None, data: Data, parameters: Parameters | None
    ) -> tuple[PreparationRecord, Data]:
        """Return the record after one more batch of a stream, and the data to learn from.

        ``record`` and ``parameters`` are those learned so far, None for the first batch.
        """
        record = self.measure(data) if record is None else record
        return record, self.prepare(record, data)

    def add_parameters(self, starts: Parameters, model: Model) -> Parameters:
        """Return initial parameters with those that this preparation adds to the model."""
        return starts

    def finish(self, learned: Learned) -> Learned:
        """Return model, parameters, statistics and record as they are stored at the end of learning."""
        return learned

    def components_of(self, record: PreparationRecord, components: np.ndarray) -> np.ndarray:
        """Return learned components in the space of X."""
        return components

    def prepare_components(self, record: PreparationRecord, components: np.ndarray) -> np.ndarray:
        """Return components of the space of X, such as those that a user gives, as the model learns them."""
        return components

    def attributes(self, record: PreparationRecord, dtype: np.dtype) -> dict[str, Any]:
        """Return fitted attributes that follow from the record."""
        return {}
