"""Results for rows of data, block by block, and the evidence from which on rows count as explained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multicause import inference
from multicause.arrays import double_precision
from multicause.em.e_step import evidence_threshold
from multicause.engines import Data, default_engine
from multicause.estimators.fitted_state import FittedState
from multicause.initialization.data_checks import check_noise
from multicause.model import Model, interned
from multicause.persistence.row_writing import check_out, write_rows

#: Function of results of some rows, and of a function that returns these rows.
Finish = Callable[[np.ndarray, Callable[[], np.ndarray]], np.ndarray]


class RowResults(FittedState):
    """Base class that applies functions of a fitted causal model to rows."""

    _threshold: float | Data | None  # evidence_threshold_, or the data from which it will be computed

    def _by_rows(
        self,
        function: Any,
        X: ArrayLike,
        *arguments: Any,
        model: Model | None = None,
        out: Any = None,
        finish: Finish | None = None,
    ) -> Any:
        """Apply a compiled inference function to X, block by block, with this or another model.

        ``finish`` is applied to results of some rows, and to a function that returns these rows of X.
        """
        check_is_fitted(self)
        model = self._recognizer if model is None else model
        if out is not None:
            check_out(out, X)
        lazy = default_engine(X).lazy
        if lazy is not None:
            later = partial(self._by_rows, function, model=model, finish=finish)
            return self._lazily(lazy, later, X, *arguments, out=out)
        original = data = self._load(X, None, reset=False)
        if data.dtype != self.components_.dtype:
            data = data.transformed(partial(np.asarray, dtype=self.components_.dtype))
        data = self._preparer().transform(self._preparation, data)
        check_noise(model.noise, data)
        model = interned(replace(model, missing=data.has_missing))
        with double_precision():
            data = inference.arrange(model, data, len(self.components_))

            def of_block(block: Any) -> Any:
                return function(model, block, self._parameters, *arguments)

            if out is not None:
                return write_rows(out, data.n_rows, _finished(finish, original, data.results(of_block)))
            (results,) = _finished(finish, original, [data.collect(data.map(of_block))])
            return results

    def _set_threshold(self, data: Data) -> None:
        """Store the data from which :attr:`evidence_threshold_` is computed; None if all states are considered."""
        self._threshold = -np.inf if self._recognizer.posterior.max_active is None else data.released()

    @property
    def evidence_threshold_(self) -> float:
        """Log evidence reached by the share of training rows that the states considered should explain.

        It is computed by a pass over these rows when it is first accessed; until then the model keeps a reference to
        them.
        """
        threshold = self.__dict__.get("_threshold")
        if threshold is None:
            raise AttributeError(
                f"This {type(self).__name__} has no evidence_threshold_, because it is still learning."
            )
        if isinstance(threshold, Data):
            with double_precision():
                self._threshold = threshold = self._evidence_threshold(threshold)
        return threshold

    @evidence_threshold_.setter
    def evidence_threshold_(self, threshold: float) -> None:
        self._threshold = threshold

    def __getstate__(self) -> dict[str, Any]:
        """Compute values that need the training data, which are not part of a pickle, and return the state."""
        if isinstance(self.__dict__.get("_threshold"), Data):
            _ = self.evidence_threshold_
        return super().__getstate__()

    def _evidence_threshold(self, data: Data) -> float:
        recognizer = self._recognizer
        data = inference.arrange(recognizer, data, len(self.components_))
        return evidence_threshold(recognizer, data, self._parameters)


def _finished(finish: Finish | None, data: Data, parts: Iterable[Any]) -> Iterator[Any]:
    """Yield results of consecutive rows of the data, to which a function is applied."""
    start = 0
    for part in parts:
        if finish is None:
            yield part
            continue
        places = np.arange(start, start + len(part))
        yield finish(part, partial(data.rows, places))
        start += len(part)
