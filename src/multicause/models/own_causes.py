"""Causes of a user's own model, which is given by its log joint alone.

J. Drefs, E. Guiraud and J. Lücke, Evolutionary Variational Optimization of Generative Models, JMLR 23 (2022) 21:1–51.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from multicause.engines import Engine
from multicause.estimators.gradient_causes import GradientCauses
from multicause.posteriors import Posterior
from multicause.solvers.joint_checks import check_initial, check_log_joint, rows_to_test
from multicause.solvers.joint_model import FunctionModel, LogJoint
from multicause.solvers.optimizers import Optimizer


class OwnCauses(GradientCauses):
    """Binary causes of a model that is given by a function for its log joint.

    For each row the states K_n with the largest log joint are searched, and parameters follow the gradient of the bound
    F = Σ_n log Σ_{s ∈ K_n} p(s, y_n | Θ) by steps of optax.

    Parameters
    ----------
    log_joint : callable
        ``log_joint(parameters, states, rows)`` returns log p(s, y) of states (n, S, H), which are zeros and ones, in
        rows (n, D): an array (n, S). It is written with ``jax.numpy`` and pure; it is tried before learning begins.
        Missing values are NaN in ``rows``.
    initialize : callable
        ``initialize(X, n_components, random)`` returns the first parameters, a dictionary of arrays, given data (N, D)
        and a ``numpy.random.RandomState``. A parameter may have any value: take logarithms of positive ones.
    n_components : int, default=10
        Number H of causes.
    posterior : {"evolved", "beam"}, Evolved or Beam, default="evolved"
        States of a row: :class:`multicause.posteriors.Evolved`, kept between passes over the data and bred, or
        :class:`multicause.posteriors.Beam`, which searches them again in every pass. Neither needs more than the log
        joint.
    optimizer : {"adam", "momentum"} or Optimizer, default="adam"
        Optimizer of the parameters, such as ``multicause.solvers.optimizers.Optax("rmsprop")``.
    learning_rate : float, default=0.02
        Learning rate of the first pass, relative to the root mean square of each array of the first parameters.
    schedule : {"constant", "linear", "cosine"}, default="constant"
        How the learning rate falls to a hundredth of its first value over ``max_iter`` passes.
    batch_size : int, default=500
        Number of rows of a step.
    max_iter : int, default=200
        Maximum number of passes over the data.
    tol : float, default=1e-4
        Learning ends when the mean bound per row rises by less than this per pass, averaged over several passes.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    parameters_ : dict
        The learned parameters, as NumPy arrays.
    lower_bound_, lower_bounds_ : float, ndarray of shape (n_iter_,)
        Mean bound per row in the last pass, and in all of them.
    n_iter_, converged_, outcome_ : int, bool, str
        Passes over the data, and how learning ended: "converged", "max_iter", "stopped" or "non_finite".
    n_features_in_ : int
        Number of features seen in ``fit``.

    Notes
    -----
    Model files and checkpoints name the functions and do not contain them: pass them to ``load(path,
    parts=[log_joint, initialize])``. They must have a name, as functions made with ``def`` have.
    """

    _constraints = {"log_joint": [callable], "initialize": [callable]}

    def __init__(
        self,
        log_joint: LogJoint,
        initialize: Callable[[np.ndarray, int, np.random.RandomState], Any],
        n_components: int = 10,
        *,
        posterior: str | Posterior = "evolved",
        optimizer: str | Optimizer = "adam",
        learning_rate: float = 0.02,
        schedule: str = "constant",
        batch_size: int = 500,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.log_joint = log_joint
        self.initialize = initialize
        self.n_components = n_components
        self.posterior = posterior
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _joint_model(self) -> FunctionModel:
        return FunctionModel(self.log_joint)

    def _initial(self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> Any:
        initial = self.initialize(X, int(self.n_components), random)
        check_initial(initial)
        parameters = self._cast(initial, X.dtype)
        check_log_joint(self.log_joint, parameters, rows_to_test(X), int(self.n_components))
        return parameters

    def _sizes(self, parameters: Any) -> Any:
        return jax.tree.map(lambda leaf: np.sqrt(np.mean(np.square(leaf))) or 1.0, parameters)
