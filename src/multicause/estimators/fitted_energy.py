"""Methods of a fitted energy-based model: activities, energies, scores, the partition function, samples and saving."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause.arrays import double_precision
from multicause.engines import default_engine
from multicause.estimators import energy_density as density
from multicause.estimators.arguments import check_count, validate_n_samples
from multicause.estimators.base import BaseModel, ValueLabels
from multicause.persistence.row_writing import check_out, collect_or_write
from multicause.runtime.user_warnings import warn_user
from multicause.samplers.annealed import LogPartition
from multicause.solvers import optimizers
from multicause.solvers.energy_problem import EnergyProblem, restored, saved


class FittedEnergy(BaseModel):
    """Base class with the methods of a fitted energy-based model."""

    mean_: np.ndarray
    mixing_: np.ndarray
    log_partition_: LogPartition | None
    n_features_in_: int
    momentum: float
    _problem: EnergyProblem  # parts, learned parameters and whitening; ``partial_fit`` continues from it

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the hidden activities of all layers, concatenated: (n_samples, n_components + sum of layers).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(density.activities_of, X, out)

    def energy(self, X: ArrayLike) -> np.ndarray:
        """Compute the energy E(z) of each row: (n_samples,)."""
        return self._by_rows(density.energies_of, X)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the log density of each row in the space of X: (n_samples,).

        If Z is neither known nor estimated (``log_partition_`` is None), the density is not normalized: rows can be
        compared, models cannot. :meth:`estimate_log_partition` or ``estimate_partition=True`` normalizes it.
        """
        energy = self.energy(X)
        log_partition = 0.0 if self.log_partition_ is None else self.log_partition_.value
        return (self._problem.whitening.log_volume - log_partition - energy).astype(energy.dtype)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` if it is given.

        It warns if densities are not normalized, as a grid search would compare them.
        """
        score = super().score(X, y, sample_weight)
        if self.log_partition_ is None:
            warn_user(
                "The density of this model is not normalized, so its score must not be compared with that of another "
                "model. Use estimate_partition=True, or estimate_log_partition() after the fit."
            )
        return score

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return rows (n_samples, n_features) with these first-layer activities, by the pseudo-inverse of the filters.

        Activities of further layers may be included; they follow from the first and are not used.
        """
        check_is_fitted(self)
        S, H = np.asarray(S, dtype=self.components_.dtype), len(self.components_)
        if S.ndim != 2 or S.shape[1] not in (H, self._n_features_out):
            raise ValueError(f"Activities must have shape (n_samples, {self._n_features_out}); got {S.shape}.")
        if not np.isfinite(S).all():
            raise ValueError("Activities must be finite; they hold NaN or infinity.")
        return (S[:, :H] @ self.mixing_.T + self.mean_).astype(S.dtype)

    def estimate_log_partition(
        self,
        *,
        n_chains: int = 500,
        n_temperatures: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> LogPartition:
        """Estimate log Z with its standard error by annealed importance sampling; exact if Z is known.

        The result is stored in ``log_partition_``, so that :meth:`score_samples` is normalized from now on. More
        temperatures improve each chain's estimate; use more if the standard error is not well below one.

        Raises ValueError if exp(−E) has no finite integral, which can happen with heavy tails in overcomplete models.
        """
        check_is_fitted(self)
        check_count("n_chains", n_chains, least=2)
        check_count("n_temperatures", n_temperatures)
        if not self._problem.method.energy.has_density(self._problem.updates.parameters):
            random = check_random_state(random_state)
            self.log_partition_ = density.estimate_log_partition(
                self._problem, int(n_chains), int(n_temperatures), self._memory_budget, random
            )
        return self.log_partition_  # type: ignore[return-value]

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (n_samples, n_features) from the model, with their activities.

        If Z is known the rows are independent draws, else each is the end of a separate chain that followed a path of
        densities to the model. It warns if exp(−E) has no finite integral: the rows are then samples of no
        distribution.
        """
        check_is_fitted(self)
        n_rows = validate_n_samples(n_samples, sum(self.components_.shape), self.components_.dtype)
        if not density.draws_exactly(self._problem) and (reason := density.why_improper(self._problem)):
            warn_user(reason)
        X = density.draw_rows(self._problem, n_rows, self._memory_budget, check_random_state(random_state))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return X, np.asarray(self.transform(X))

    # ---------------------------------------------------------------------------------------------- internals

    @property
    def _memory_budget(self) -> str | int:
        return getattr(self._engine(), "memory_budget", "2GiB")

    def _by_rows(self, function: Any, X: ArrayLike, out: Any = None) -> Any:
        check_is_fitted(self)
        if out is not None:
            check_out(out, X)
        lazy = default_engine(X).lazy
        if lazy is not None:
            return self._lazily(lazy, partial(self._by_rows, function), X, out=out)
        data = self._load(X, None, reset=False)
        with double_precision():
            data, of_block = density.by_rows(function, self._problem, data)
            return collect_or_write(data, of_block, out)

    def _state(self) -> dict[str, Any]:
        return {**saved(self._problem), "log_partition": self.log_partition_}

    def _restore(self, state: dict[str, Any]) -> None:
        former = {"optimizer": optimizers.Momentum(self.momentum), "schedule": "linear"}
        with double_precision():
            problem = restored({**former, **state}, self.n_features_in_)
            self._set(density.fitted_attributes(problem, problem.updates))
        if state["log_partition"] is not None:
            self.log_partition_ = state["log_partition"]

    def value_labels(self) -> ValueLabels:
        """Return descriptions of the values of a fitted model, for reports and plots."""
        known = "log density" if self.log_partition_ is not None else "log density without normalization"
        return ValueLabels("log density", "log density", known)

    @property
    def _n_features_out(self) -> int:
        layers = self._problem.updates.parameters.layers
        return int(len(self.components_) + sum(len(layer.bias) for layer in layers))
