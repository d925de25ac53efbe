"""Independent components: as many causes as dimensions, without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import special_ortho_group
from sklearn.utils._param_validation import Interval, Options

from multicause import annealing as schedules
from multicause.combinations import Combination, Sum
from multicause.em.initialization import InitialConditions
from multicause.em.results import FitResult, start_of
from multicause.engines import Data, Engine
from multicause.estimators.base import ValueLabels
from multicause.estimators.causal import CausalEstimator, FitProblem
from multicause.estimators.summary import ModelSummary
from multicause.model import Model, Parameters, interned
from multicause.noises import Noise, Noiseless
from multicause.parts import PartChoice, resolve
from multicause.posteriors import Inverse
from multicause.preparation.moments import check_variation, covariance_of
from multicause.preparation.whitening import whitening_matrices
from multicause.priors import Cauchy, Continuous, HyperbolicSecant, Prior, SubGaussian
from multicause.solvers.quasi_newton import learn_second_order
from multicause.updates import NaturalGradient
from multicause.wiring import check

PRIORS: dict[str, type] = {"hyperbolic_secant": HyperbolicSecant, "cauchy": Cauchy, "sub_gaussian": SubGaussian}
SOLVERS = ("quasi_newton", "natural_gradient")


class IndependentComponents(CausalEstimator):
    """Independent components analysis (ICA): the linear map that makes causes independent under a non-Gaussian prior.

    TN10 eq. 10.33–10.38, the limit of sparse coding without noise and with as many causes as dimensions::

        u = G·v,  p[v] ∝ Π_a exp(g(v_a))
        v = W·u,  W = G⁻¹
        L(W) = ⟨Σ_a g([W·u]_a)⟩ + log |det W|
        W ← W + ε (W + g′(v) [v·W])

    With p[v] ∝ 1/cosh(v), g′(v) = −tanh(v). F is the log-likelihood. Data are centred and whitened first; if
    ``n_components`` is below the number of features, the model describes the projection on that many principal axes.

    Parameters
    ----------
    n_components : int, optional
        Number of causes; by default as many as features.
    prior : {"hyperbolic_secant", "cauchy", "sub_gaussian"} or Continuous, default="hyperbolic_secant"
        Shape of the causes' density. It has to deviate from a Gaussian in the same direction as the causes do:
        "sub_gaussian" is for causes that are flatter than a Gaussian, the others for causes with heavier tails.
    solver : {"quasi_newton", "natural_gradient"}, default="quasi_newton"
        Method that maximizes the likelihood: a second-order method that needs some tens of iterations, or the rule
        above.
    update : NaturalGradient, optional
        Learning rate of the rule above, for the solver "natural_gradient" and for ``partial_fit``.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-6
        "quasi_newton" has converged when no entry of 1 + ⟨g′(v) vᵀ⟩ exceeds it, "natural_gradient" when the mean
        log-likelihood rises by less than this per iteration.
    init : {"random", "identity"} or array-like of shape (n_components, n_components), default="random"
        Initial components of the whitened data: a random rotation, the principal axes, or a given array.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_, projective_fields_ : ndarray of shape (n_components, n_features)
        G, transposed: the effect of each cause on the data.
    receptive_fields_ : ndarray of shape (n_components, n_features)
        W: the filters by which causes are computed from the data.
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    activity_ : ndarray of shape (n_components,)
        Scale of the prior.
    lower_bound_, lower_bounds_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; the bound is the log-likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import IndependentComponents
    >>> sources = np.random.RandomState(0).laplace(size=(1000, 2))
    >>> found = IndependentComponents(random_state=0).fit_transform(sources @ [[1, 1], [0, 2]])
    >>> np.abs(np.corrcoef(found.T, sources.T)[:2, 2:]).max(axis=0).round(1).tolist()
    [1.0, 1.0]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **{
            name: CausalEstimator._parameter_constraints[name]
            for name in ["prior", "update", "max_iter", "tol", "random_state", "verbose", "engine"]
        },
        "init": [str, "array-like"],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [Options(str, set(SOLVERS))],
    }
    summary = ModelSummary(
        "p[v] ∝ Π_a exp(g(v_a)); u = G·v",
        "v = W·u; W = G⁻¹",
        "W ← W + ε(W + g′(v)[v·W]), or a second-order method of the same gradient",
    )
    annealing = None
    repair = False
    activity = None
    noise_scale = None
    n_init = 1
    learn: tuple[str, ...] = ("components",)
    mean_: np.ndarray
    _results = ("mean_",)
    # Each batch of a stream is one step (eq. 10.37); nothing is averaged over batches.
    _remembers_all = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        prior: str | Prior = "hyperbolic_secant",
        solver: str = "quasi_newton",
        update: NaturalGradient | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components  # type: ignore[assignment]
        self.prior = prior
        self.solver = solver
        self.update = update
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    @property
    def projective_fields_(self) -> np.ndarray:
        """Projective fields G, the effect of each cause on the data: (n_components, n_features)."""
        return self.components_

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W with v = W·(u − mean), the filters that compute causes: (n_components, n_features)."""
        W = np.linalg.inv(self._parameters.components.astype(float)).T @ self._preparation["forward"]
        return W.astype(self.components_.dtype)

    def _combination(self, noise: Noise) -> Combination:
        return Sum()

    def _accepts_negative(self) -> bool:
        return True

    def _value_labels(self) -> ValueLabels:
        """Return labels of the bound, which name the projection on principal axes if not all axes are kept."""
        n_kept, n_features = self.components_.shape
        part = "" if n_kept == n_features else f" of the projection on {n_kept} principal axes"
        return ValueLabels(*(label + part for label in super()._value_labels()))

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names and None stand for in :meth:`_wire`."""
        return {
            **super()._part_choices(),
            "prior": PartChoice(PRIORS),
            "update": PartChoice(defaults=lambda: (NaturalGradient(),)),
        }

    def _wire(self, data: Data) -> Model:
        prior = resolve(self.prior, PRIORS, "prior", Continuous)
        update = resolve(NaturalGradient() if self.update is None else self.update, {}, "update", NaturalGradient)
        model = Model(prior, Sum(), Noiseless(), Inverse(), update, learn=frozenset(self.learn))
        return interned(check(model, type(self)))

    _allows_missing = False
    _needs_all_values = "whitens data, which takes complete rows"

    def _prepare(self, data: Data) -> dict[str, np.ndarray]:
        """Return the mean of the data and its whitening matrices."""
        if self.n_components is not None and self.n_components > data.n_features:
            raise ValueError(
                f"There cannot be more independent components than features: n_components={self.n_components}, but X "
                f"has {data.n_features} features. Lower n_components, or use SparseCoding."
            )
        check_variation(data)
        _, mean, covariance = covariance_of(data)
        forward, backward = whitening_matrices(
            covariance,
            "pca",
            self.n_components,
            remedy="lower n_components to at most {rank}",
            precision=float(np.finfo(data.dtype).eps),
        )
        self.mean_ = mean.astype(data.dtype)
        return {"mean": mean, "forward": forward, "backward": backward}

    @staticmethod
    def _prepared(record: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        return (rows - record["mean"].astype(rows.dtype)) @ record["forward"].T.astype(rows.dtype)

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        record = self._preparation
        return rows @ record["backward"].T.astype(rows.dtype) + record["mean"].astype(rows.dtype)

    def _starts(self, initial: InitialConditions) -> Parameters:
        H = initial.data.n_features
        if isinstance(self.init, str):
            if self.init not in ("random", "identity"):
                raise ValueError(f"Unknown init {self.init!r}. Known: 'random', 'identity', or an array.")
            turn = H > 1 and self.init == "random"
            components = special_ortho_group.rvs(H, random_state=initial.random) if turn else np.eye(H)
        else:
            components = np.asarray(self.init, dtype=float)
            if components.shape != (H, H) or not np.isfinite(components).all():
                raise ValueError(
                    f"init must be finite and have shape (n_components, n_components) = ({H}, {H}), as components of "
                    f"the whitened data; got shape {components.shape}."
                )
            if np.linalg.matrix_rank(components) < H:
                raise ValueError("init must be invertible; its rows are linearly dependent. Use other components.")
        volume = 0.5 * np.linalg.slogdet(self._preparation["forward"] @ self._preparation["forward"].T)[1]
        records = (components, initial.model.prior.initialize(H, None), {"log_volume": np.asarray(volume)})
        return Parameters(*jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=initial.data.dtype)[None], records))

    def _learn(self, problem: FitProblem) -> tuple[FitResult, schedules.Annealing]:
        if self.solver == "natural_gradient":
            return super()._learn(problem)
        data = (problem.model, problem.data, start_of(problem.starts))
        settings = {name: problem.settings[name] for name in ("max_iter", "tol", "watch", "journal")}
        return learn_second_order(*data, **settings), schedules.NoAnnealing()

    def _learned(self, model: Model, parameters: Parameters) -> dict[str, Any]:  # type: ignore[override]
        learned = super()._learned(model, parameters)
        backward = self._preparation["backward"].T
        whitened = learned["components_"]
        return {**learned, "components_": (whitened.astype(float) @ backward).astype(whitened.dtype)}
