"""Methods of a fitted model with a log joint: probabilities of causes, evidence and states of rows, saved state."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multicause import posteriors
from multicause.arrays import double_precision
from multicause.engines import default_engine
from multicause.estimators import joint_inference as inference
from multicause.estimators.base import BaseModel, ValueLabels
from multicause.parts import resolve
from multicause.persistence.row_writing import check_out, collect_or_write
from multicause.posteriors import Posterior
from multicause.solvers import optimizers
from multicause.solvers.joint_learning import JointMethod
from multicause.solvers.joint_model import JointModel
from multicause.solvers.optimizers import Optimizer

# Posteriors that need nothing but a log joint, by name.
SEARCHES = {name: cls for name, cls in posteriors.NAMES.items() if cls().log_joint_search() is not None}


class StateRecognition(NamedTuple):
    """The most probable states of each row, best first, with probabilities among the states considered."""

    states: np.ndarray  # (n, K, H)
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)


class FittedGradientCauses(BaseModel):
    """Base class with the methods of a fitted model that is declared by its log joint."""

    n_components: int
    posterior: str | Posterior
    optimizer: str | Optimizer
    parameters_: Any
    _optimizer_state: tuple[Any, ...]  # state of the optimizer, with which ``partial_fit`` continues
    _sums: Any  # sums over rows from which parameters follow in closed form
    _relative: Any  # sizes of the first parameters, to which steps are relative

    @abstractmethod
    def _joint_model(self) -> JointModel:
        """Return the log joint log p(s, y) of states and rows as a function of the parameters."""

    @property
    def has_states(self) -> bool:
        """Return True: causes are on or off."""
        return True

    @property
    def has_probabilities(self) -> bool:
        """Return True: ``transform`` returns probabilities of causes."""
        return True

    def _derived(self, parameters: Any) -> dict[str, Any]:
        """Return fitted attributes that only this model has, as a function of its parameters."""
        return {}

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the probability of each cause: (n_samples, n_components).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(inference.mean_states, X, out)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the lower bound log Σ p(s, y) over the states considered: (n_samples,)."""
        return self._by_rows(inference.log_evidence, X)

    def recognize(self, X: ArrayLike, top: int | None = 16) -> StateRecognition:
        """Return the ``top`` most probable states of each row, or all that were considered, with the log evidence."""
        if top is not None and (not isinstance(top, Integral) or top < 1):
            raise ValueError(f"top must be a positive number of states, or None for all; got {top!r}.")
        states, probabilities, evidence = self._by_rows(inference.best_states, X)
        return StateRecognition(states[:, :top], probabilities[:, :top], evidence)

    def _by_rows(self, function: Any, X: Any, out: Any = None) -> Any:
        """Apply a function of :mod:`joint_inference` to the rows of X, block by block."""
        check_is_fitted(self)
        if out is not None:
            check_out(out, X)
        lazy = default_engine(X).lazy
        if lazy is not None:
            return self._lazily(lazy, partial(self._by_rows, function), X, out=out)
        data, method, H = self._load(X, None, reset=False), self._method(), int(self.n_components)
        with double_precision():
            data = inference.arranged(method, self.parameters_, data, self._fitted_dtype, H)

            def of_block(block: Any) -> Any:
                return inference.of_block(function, method, H, self.parameters_, block)

            return collect_or_write(data, of_block, out)

    def _method(self) -> JointMethod:
        """Return model, search and optimizer; raise an error if the search needs more than a log joint."""
        posterior = resolve(self.posterior, posteriors.NAMES, "posterior", Posterior)
        search = posterior.log_joint_search()
        if search is None:
            raise TypeError(
                f"posterior of {type(self).__name__} must be {' or '.join(map(repr, SEARCHES))}, which need nothing "
                f"but a log joint; got {posterior!r}. With Evolved(population) of at least 2^n_components states the "
                "posterior is exact."
            )
        return JointMethod(
            self._joint_model(), search, resolve(self.optimizer, optimizers.NAMES, "optimizer", Optimizer)
        )

    def check_settings(self) -> None:
        """Raise an error for constructor arguments, or parts made of them, that no data would suit."""
        super().check_settings()
        self._method()

    def _state(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters_,
            "moments": self._optimizer_state,
            "sums": self._sums,
            "sizes": self._relative,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        parameters = state["parameters"]
        method, H = self._method(), int(self.n_components)
        with double_precision():
            inference.check_parameters(method, parameters, H, self.n_features_in_, state["moments"])
        self._set({"parameters_": parameters, "_optimizer_state": state["moments"], "_sums": state["sums"]})
        self._set({"_relative": state["sizes"], **self._derived(parameters)})

    @property
    def _fitted_dtype(self) -> np.dtype:
        return np.asarray(jax.tree.leaves(self.parameters_)[0]).dtype

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _needs_complete(self) -> str:
        return ""

    def value_labels(self) -> ValueLabels:
        """Return descriptions of the values of a fitted model, for reports and plots."""
        return ValueLabels("lower bound", "lower bound", "lower bound")
