"""Sparse coding: more causes than are ever used at once, of which each row needs a few.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10, after B. A. Olshausen and
D. J. Field, Emergence of simple-cell receptive field properties by learning a sparse code for natural images, Nature
381 (1996) 607–609.
"""

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from multicause.combinations import Combination, Sum
from multicause.compatibility import check
from multicause.engines import Data, Engine
from multicause.estimator import CausalEstimator, FitProblem
from multicause.learning import annealing as schedules
from multicause.learning.initialization import Outset
from multicause.learning.results import Fit, start_of
from multicause.learning.stochastic import learn_in_batches
from multicause.learning.updates import DeltaRule, Update
from multicause.model import Model, Parameters, interned
from multicause.models.summary import Brief
from multicause.noises import Gaussian, Noise
from multicause.parts import PartChoice, resolve
from multicause.posteriors import MostProbable, Posterior
from multicause.priors import Cauchy, Continuous, Laplace, Prior

PRIORS: dict[str, Any] = {"cauchy": partial(Cauchy, scale=0.3), "laplace": partial(Laplace, scale=0.5)}
# How nearly causes must be at rest for a step of learning, unless the user gives a posterior of their own. On patches
# of photographs F is then too low by a millionth of itself, and steps take less than half of the time.
LEARNING_TOLERANCE = 1e-2


class SparseCoding(CausalEstimator):
    """Sparse coding (Olshausen & Field): causes add up, and a sparse prior keeps most of them near zero.

    TN10 eq. 10.28–10.32 and its appendix::

        p[v] ∝ Π_a exp(g(v_a))
        p[u | v] = N(u; G·v, σ²)
        v(u): Gᵀ(u − G·v)/σ² + g′(v) = 0
        G ← G + ε (u − G·v) v,  with lengths that give all causes about the same variance

    There may be more causes than features. Recognition takes the most probable causes; F is their log-probability
    together with the data (eq. 10.30), not a bound of the likelihood. Data should have about unit variance in each
    dimension and zero mean, as :class:`multicause.preprocessing.Whitening` makes it.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    prior : {"cauchy", "laplace"} or Continuous, default="laplace"
        Shape of the sparse prior: ``Cauchy(scale=β)`` is eq. 10.29, by default with β = 0.3, ``Laplace(scale=1/α)`` the
        double exponential, by default with α = 2.
    noise_scale : float, default=0.3
        Standard deviation σ of the noise, which is not learned.
    posterior : MostProbable, optional
        How the most probable causes are found: ``MostProbable(solver="dynamics")`` is the network of eq. 10.32; by
        default an accelerated solver that comes to rest at the same place. While learning, the default stops a little
        earlier than in recognition; a posterior that is given is used for both.
    update : DeltaRule or LeastSquares, optional
        How components move, and which variance causes should have. Least squares have no control of lengths.
    batch_size : int, default=200
        Rows for each step of the delta rule. Where one batch does not hold all, rows with weights are shown in
        proportion to them, as many in a pass as the weights add up to, but at least as many as have a weight, and at
        most 16 times as many.
    max_iter : int, default=50
        Most passes over the data.
    tol : float, default=1e-3
        Learning has converged when F per row rises by less per pass, over some passes.
    init, random_state, verbose, engine
        As for :class:`multicause.LinearCauses`; by default components are random, of length one.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        G, transposed: the causes' projective fields.
    activity_ : ndarray of shape (n_components,)
        Scale of the prior.
    noise_variance_ : float
        σ².
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        Mean F per row in each pass, while learning, and at the end.
    lower_bound_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; an iteration is a pass over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import SparseCoding
    >>> X = np.random.RandomState(0).laplace(size=(200, 4))
    >>> SparseCoding(6, max_iter=3, tol=0, random_state=0).fit(X).transform(X).shape
    (200, 6)
    """

    _exact_blocks = True
    _parameter_constraints: dict[str, list[Any]] = {
        **{
            name: CausalEstimator._parameter_constraints[name]
            for name in [
                "n_components",
                "prior",
                "posterior",
                "update",
                "noise_scale",
                "max_iter",
                "tol",
                "init",
                "random_state",
                "verbose",
                "engine",
            ]
        },
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }
    in_brief = Brief(
        "p[v] ∝ Π_a exp(g(v_a)); p[u|v] = N(u; G·v, σ²)",
        "Gᵀ(u − G·v)/σ² + g′(v) = 0",
        "G ← G + ε(u − G·v)v; |G_a|² ← |G_a|² (var(v_a)/σ_v²)^α",
    )
    annealing = None
    # Each batch of a stream is a step of the delta rule: averages over causes that were recognised by older components
    # would hold learning back.
    _remembers_all = True
    repair = False
    activity = None
    n_init = 1
    learn: tuple[str, ...] = ("components",)

    def __init__(
        self,
        n_components: int = 10,
        *,
        prior: str | Prior = "laplace",
        noise_scale: float = 0.3,
        posterior: Posterior | None = None,
        update: Update | None = None,
        batch_size: int = 200,
        max_iter: int = 50,
        tol: float = 1e-3,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.noise_scale = noise_scale
        self.posterior = posterior
        self.update = update
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    @property
    def projective_fields_(self) -> np.ndarray:
        """G, what each cause does to the data: (n_components, n_features)."""
        return self.components_

    def _combination(self, noise: Noise) -> Combination:
        return Sum()

    def _accepts_negative(self) -> bool:
        return True

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return what names and None stand for, as :meth:`_wire` reads them."""
        return {
            **super()._part_choices(),
            "prior": PartChoice(PRIORS),
            "posterior": PartChoice(defaults=lambda: (MostProbable(),)),
            "update": PartChoice(defaults=lambda: (DeltaRule(),)),
        }

    def _wire(self, data: Data) -> Model:
        prior = resolve(self.prior, PRIORS, "prior", Continuous)
        noise = Gaussian()
        posterior = resolve(MostProbable() if self.posterior is None else self.posterior, {}, "posterior", MostProbable)
        update = resolve(DeltaRule() if self.update is None else self.update, {}, "update", Update)
        model = Model(prior, Sum(), noise, posterior, update, learn=frozenset(self.learn))
        return interned(check(model, type(self)))

    def _starts(self, outset: Outset) -> Parameters:
        """Random directions of length one; rows of the data, or the user's components, as they are."""
        starts = super()._starts(outset)
        if not (isinstance(self.init, str) and self.init == "random"):
            return starts
        draws = outset.random.normal(size=starts.components.shape).astype(outset.data.dtype)
        return starts._replace(components=jnp.asarray(draws / np.linalg.norm(draws, axis=-1, keepdims=True)))

    def _learn(self, problem: FitProblem) -> tuple[Fit, schedules.Annealing]:
        data = (problem.model, problem.data, start_of(problem.starts))
        settings = {"batch_size": self.batch_size, **problem.settings}
        if self.posterior is None:
            posterior = MostProbable(tol=LEARNING_TOLERANCE)
            settings["learner"] = interned(replace(problem.model, posterior=posterior))
        return learn_in_batches(*data, **settings), schedules.NoAnnealing()
