"""Causes of a user's own model, which is given by its log joint alone.

J. Drefs, E. Guiraud and J. Lücke, Evolutionary Variational Optimization of Generative Models, JMLR 23 (2022) 21:1–51.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from multicause.arrays import double_precision, key_from
from multicause.estimators.base import validate_weights, warn
from multicause.outcomes import Outcome
from multicause.solvers import log_joint as solver
from multicause.solvers.log_joint import GradientState

# Number of rows on which the function is tried before learning begins.
ROWS_TO_TRY = 8


@cache
def _adam() -> Any:
    """Return the directions of Adam, the same object for all fits, so that they share compiled programs."""
    import optax

    return optax.scale_by_adam()


class OwnRecognition(NamedTuple):
    """The most probable states of each row, best first, with probabilities among the states considered."""

    states: np.ndarray  # (n, K, H)
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)


class OwnCauses(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Binary causes of a model that is given by a function for its log joint.

    The states of each row are kept between passes over the data and bred by their log joint
    (:class:`multicause.posteriors.Evolved`), and parameters follow the gradient of the bound
    F = Σ_n log Σ_{s ∈ K_n} p(s, y_n | Θ) by steps of optax.

    Parameters
    ----------
    log_joint : callable
        ``log_joint(parameters, states, rows)`` returns log p(s, y) of states (n, S, H), which are zeros and ones, in
        rows (n, D): an array (n, S). It is written with ``jax.numpy`` and pure; it is tried before learning begins.
    initialize : callable
        ``initialize(X, n_components, random)`` returns the first parameters, a dictionary of arrays, given data (N, D)
        and a ``numpy.random.RandomState``. A parameter may have any value: take logarithms of positive ones.
    n_components : int, default=10
        Number H of causes.
    population, n_children, n_generations : int, default=64, 32 and 20
        States of a row, and how they are bred; see :class:`multicause.posteriors.Evolved`.
    learning_rate : float, default=0.02
        Step of Adam, relative to the root mean square of each array of the first parameters.
    optimizer : optax.GradientTransformation, optional
        Another optimizer in place of Adam; the learning rate is then its own.
    batch_size : int, default=500
        Number of rows of a step.
    max_iter : int, default=200
        Maximum number of passes over the data.
    tol : float, default=1e-4
        Learning ends when the mean bound per row rises by less than this per pass, averaged over several passes.
    random_state : int, RandomState or None
        Random seed.

    Attributes
    ----------
    parameters_ : dict
        The learned parameters, as NumPy arrays.
    lower_bound_, lower_bounds_ : float, ndarray of shape (n_iter_,)
        Mean bound per row in the last pass, and in all of them.
    n_iter_, converged_, outcome_ : int, bool, str
        Passes over the data, and how learning ended: "converged", "max_iter" or "non_finite".
    n_features_in_ : int
        Number of features seen in ``fit``.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "log_joint": [callable],
        "initialize": [callable],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "population": [Interval(Integral, 2, None, closed="left")],
        "n_children": [Interval(Integral, 1, None, closed="left")],
        "n_generations": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "optimizer": "no_validation",  # type: ignore[dict-item]
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        log_joint: solver.LogJoint,
        initialize: Callable[[np.ndarray, int, np.random.RandomState], Any],
        n_components: int = 10,
        *,
        population: int = 64,
        n_children: int = 32,
        n_generations: int = 20,
        learning_rate: float = 0.02,
        optimizer: Any = None,
        batch_size: int = 500,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.log_joint = log_joint
        self.initialize = initialize
        self.n_components = n_components
        self.population = population
        self.n_children = n_children
        self.n_generations = n_generations
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the parameters from X; passes show each row as often as its ``sample_weight`` says, if it is given."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        weights = validate_weights(sample_weight, X)
        random = check_random_state(self.random_state)
        with double_precision():
            initial = self.initialize(X, int(self.n_components), random)
            parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, X.dtype), initial)
            solver.check_log_joint(self.log_joint, parameters, X[:ROWS_TO_TRY], int(self.n_components))
            optimizer, sizes = self._optimizer(parameters)
            found = solver.learn(
                self.log_joint,
                X,
                weights,
                GradientState(parameters, optimizer.init(parameters), self._fresh(parameters, X)),
                optimizer=optimizer,
                sizes=sizes,
                batch_size=int(self.batch_size),
                n_children=int(self.n_children),
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                key=key_from(random),
            )
            self.parameters_ = jax.tree.map(np.asarray, found.parameters)
        outcome = Outcome.MAX_ITER if found.outcome is None else found.outcome
        self.lower_bounds_, self.n_iter_ = np.array(found.bounds), len(found.bounds)
        self.lower_bound_ = found.bounds[-1]
        self.outcome_, self.converged_ = outcome.value, outcome is Outcome.CONVERGED
        remedies = {
            Outcome.MAX_ITER: "Learning had not converged when it ended: raise max_iter, or tol.",
            Outcome.NON_FINITE: "The bound became infinite or NaN: lower learning_rate, or bound the log joint.",
        }
        warn(f"outcome_={outcome.value!r}: {remedies[outcome]}" if outcome in remedies else "")
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the probability of each cause: (n_samples, n_components)."""
        _, states, probabilities, _ = self._infer(X)
        return np.einsum("ns,nsh->nh", probabilities, states)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the lower bound log Σ p(s, y) over the states considered: (n_samples,)."""
        return self._infer(X)[3]

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` (n_samples,) if given."""
        scores = np.asarray(self.score_samples(X), dtype=float)
        return float(np.average(scores, weights=validate_weights(sample_weight, scores[:, None])))

    def recognize(self, X: ArrayLike, top: int = 16) -> OwnRecognition:
        """Return the ``top`` most probable states of each row, with their probabilities and the log evidence."""
        _, states, probabilities, evidence = self._infer(X)
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
        chosen = np.take_along_axis(states, best[..., None], axis=1)
        return OwnRecognition(chosen, np.take_along_axis(probabilities, best, axis=1), evidence)

    # ---------------------------------------------------------------------------------------------- internals

    def _optimizer(self, parameters: Any) -> tuple[Any, Any]:
        """Return the user's optimizer, or Adam and the lengths of its steps, relative to the first parameters."""
        if self.optimizer is not None:
            return self.optimizer, None

        def size(leaf: Any) -> Any:
            root = jnp.sqrt(jnp.mean(leaf**2))
            return self.learning_rate * jnp.where(root > 0, root, 1).astype(leaf.dtype)

        return _adam(), jax.tree.map(size, parameters)

    def _fresh(self, parameters: Any, X: np.ndarray) -> np.ndarray:
        """Return states of rows that have none yet, bred ``n_generations`` times: (n, S, H)."""
        H, size = int(self.n_components), int(self.batch_size)
        population = min(int(self.population), 2 ** min(H, solver.MOST_DIGITS))
        found = []
        for begin in range(0, len(X), size):
            rows = jnp.asarray(X[begin : begin + size])
            states = solver.first_states(self.log_joint, parameters, rows, population, H)
            key = jax.random.PRNGKey(begin)
            found.append(np.asarray(self._bred(parameters, states, rows, key, int(self.n_generations))))
        return np.concatenate(found)

    def _bred(self, parameters: Any, states: Any, rows: Any, key: Any, n_generations: int) -> Any:
        children = int(self.n_children)
        return solver.bred(self.log_joint, parameters, jnp.asarray(states), rows, key, children, n_generations)

    def _infer(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        with double_precision():
            parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, X.dtype), self.parameters_)
            states = self._fresh(parameters, X)
            size = int(self.batch_size)
            parts = [
                solver.weighed(
                    self.log_joint, parameters, jnp.asarray(states[k : k + size]), jnp.asarray(X[k : k + size])
                )
                for k in range(0, len(X), size)
            ]
            probabilities, evidence = (
                np.concatenate([np.asarray(each) for each in lot]) for lot in zip(*parts, strict=True)
            )
        return X, states.astype(X.dtype), probabilities, evidence

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
