"""Preparation of models that learn from mean and covariance alone: few rows with the moments of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multicause.engines import Local
from multicause.engines.base import Data
from multicause.model import Model, interned
from multicause.preparation.base import Learned, Preparation, PreparationRecord
from multicause.preparation.moments import check_variation, condensed, covariance_of, expected_moments
from multicause.records import Parameters


class Condensed(Preparation):
    """Subtract the mean, and learn from at most 2·D rows that have the covariance of all data.

    Moments do not determine the likelihood of rows with missing values. Such rows are learned from as they are, with an
    offset of the mean as a further parameter; at the end it becomes a part of the mean. In a stream, the moments of all
    batches are merged, so that no batch is forgotten.
    """

    def measure(self, data: Data) -> PreparationRecord:
        """Return weight, mean and covariance of the data in double precision."""
        check_variation(data)
        return _moments(data)

    @staticmethod
    def apply(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows minus the mean."""
        return rows - record["mean"].astype(rows.dtype)

    @staticmethod
    def undo(record: PreparationRecord, rows: np.ndarray) -> np.ndarray:
        """Return rows plus the mean."""
        return rows + record["mean"].astype(rows.dtype)

    def prepare(self, record: PreparationRecord, data: Data) -> Data:
        """Return rows with the same moments as the data, never more than twice the number of features."""
        if data.has_missing or data.n_rows <= 2 * data.n_features:
            return self.transform(record, data)
        return _rows_of(record, data.dtype)

    def prepare_batch(
        self, record: PreparationRecord | None, data: Data, parameters: Parameters | None
    ) -> tuple[PreparationRecord, Data]:
        """Return the moments of all batches so far, and rows that have them.

        Moments of a batch with missing values are their expectations under the parameters learned so far.
        """
        if record is None or parameters is None:
            record = self.measure(data)
            return record, _rows_of(record, data.dtype) if data.has_missing else self.prepare(record, data)
        if data.has_missing:
            weight, mean, covariance = expected_moments(data, record["mean"], _covariance(parameters))
            batch = {"weight": np.asarray(weight), "mean": mean, "covariance": covariance}
        else:
            batch = _moments(data)
        record = merged(record, batch)
        return record, _rows_of(record, data.dtype)

    def add_parameters(self, starts: Parameters, model: Model) -> Parameters:
        """Return starts with an offset of the mean to be learned, if values are missing."""
        if not model.missing:
            return starts
        n_starts, _, n_features = starts.components.shape
        offset: Any = np.zeros((n_starts, n_features), starts.components.dtype)
        return starts._replace(noise={**starts.noise, "offset": offset})

    def finish(self, learned: Learned) -> Learned:
        """Move a learned offset into the mean, and return a model of complete rows: later batches are moments.

        Statistics of rows with missing values are left out, because batches could not be added to them.
        """
        model, parameters, statistics, record = learned
        if "offset" in parameters.noise:
            noise = dict(parameters.noise)
            record = {**record, "mean": record["mean"] + np.asarray(noise.pop("offset"), dtype=float)}
            parameters = parameters._replace(noise=noise)
        if model.missing:
            statistics = None
        return Learned(interned(replace(model, missing=False)), parameters, statistics, record)

    def attributes(self, record: PreparationRecord, dtype: np.dtype) -> dict[str, Any]:
        """Return the mean of the data."""
        return {"mean_": record["mean"].astype(dtype)}


def merged(one: PreparationRecord, other: PreparationRecord) -> PreparationRecord:
    """Return weight, mean and covariance of the union of two sets of rows."""
    weight = one["weight"] + other["weight"]
    share, apart = other["weight"] / weight, other["mean"] - one["mean"]
    between = share * (1 - share) * np.outer(apart, apart)
    within = (1 - share) * one["covariance"] + share * other["covariance"]
    return {"weight": np.asarray(weight), "mean": one["mean"] + share * apart, "covariance": within + between}


def _moments(data: Data) -> PreparationRecord:
    weight, mean, covariance = covariance_of(data)
    return {"weight": np.asarray(weight), "mean": mean, "covariance": covariance}


def _rows_of(record: PreparationRecord, dtype: np.dtype) -> Data:
    return Local().load(*condensed(float(record["weight"]), record["covariance"], dtype))


def _covariance(parameters: Parameters) -> np.ndarray:
    """Return the covariance of the data under a model of Gaussian causes that add up, in double precision."""
    G, scale = np.asarray(parameters.components, dtype=float), np.asarray(parameters.prior["scale"], dtype=float)
    noise = np.asarray(parameters.noise["variance"], dtype=float) * np.ones(G.shape[1])
    return (G.T * scale**2) @ G + np.diag(noise)
