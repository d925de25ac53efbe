"""Independent components: as many causes as dimensions, without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.combinations import Sum
from multicause.compatibility import Capability
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.fields import UnmixingFields
from multicause.estimators.settings import Named
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.rotations import rotations
from multicause.model import Model
from multicause.noises import Noiseless
from multicause.parts import resolve
from multicause.posteriors import Inverse
from multicause.preparation.base import Preparation
from multicause.preparation.whitened import Whitened
from multicause.priors import Cauchy, Continuous, HyperbolicSecant, Prior, SubGaussian
from multicause.records import Parameters
from multicause.runtime.scikit_learn import Options
from multicause.search.em import EM
from multicause.solvers.quasi_newton import QuasiNewton
from multicause.updates import NaturalGradient, Update

PRIORS: dict[str, type] = {"hyperbolic_secant": HyperbolicSecant, "cauchy": Cauchy, "sub_gaussian": SubGaussian}
SOLVERS = ("quasi_newton", "natural_gradient")


class IndependentComponents(UnmixingFields):
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

    _capabilities = frozenset({Capability.WHITENED})
    _constraints = {
        "prior": [Named(PRIORS), Prior],
        "init": [str, "array-like"],
        "solver": [Options(str, set(SOLVERS))],
    }

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

    def _parts(self) -> Model:
        prior = resolve(self.prior, PRIORS, "prior", Continuous)
        update = resolve(NaturalGradient() if self.update is None else self.update, {}, "update", Update)
        return Model(prior, Sum(), Noiseless(), Inverse(), update, learn=frozenset({"components"}))

    def _preparer(self) -> Preparation:
        return Whitened(self.n_components)

    def _solver(self) -> Solver:
        if self.solver == "quasi_newton":
            return QuasiNewton(max_iter=self.max_iter, tol=self.tol)
        # Each M-step is a step of the natural gradient, and a batch of a stream is one step.
        return EM(max_iter=self.max_iter, tol=self.tol, averages_batches=False)

    def _starts(self, initial: InitialConditions) -> Parameters:
        return rotations(initial, self.init)
