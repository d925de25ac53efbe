"""Sparse coding: many real-valued causes, of which only a few are active in each row.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10, after B. A. Olshausen and
D. J. Field, Emergence of simple-cell receptive field properties by learning a sparse code for natural images, Nature
381 (1996) 607–609.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.combinations import Sum
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.fields import ProjectiveFields
from multicause.estimators.settings import Named
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.scaling import with_lengths_of_data, with_relative_noise
from multicause.model import Model
from multicause.noises import Gaussian
from multicause.parts import resolve
from multicause.posteriors import MostProbable, Posterior
from multicause.priors import Cauchy, Continuous, Laplace, Prior
from multicause.records import Parameters
from multicause.solvers.mini_batches import MiniBatches
from multicause.updates import DeltaRule, Update

PRIORS: dict[str, Any] = {"cauchy": partial(Cauchy, scale=0.3), "laplace": partial(Laplace, scale=0.5)}
# Tolerance of the most probable causes in a learning step, unless the user gives a posterior. On patches of
# photographs F is then too low by a relative error of one millionth, and steps take less than half of the time.
LEARNING_TOLERANCE = 1e-2


class SparseCoding(ProjectiveFields):
    """Sparse coding (Olshausen & Field): causes add up, and a sparse prior keeps most of them near zero.

    TN10 eq. 10.28–10.32 and its appendix::

        p[v] ∝ Π_a exp(g(v_a))
        p[u | v] = N(u; G·v, σ²)
        v(u): Gᵀ(u − G·v)/σ² + g′(v) = 0
        G ← G + ε (u − G·v) v,  with lengths that give all causes about the same variance

    There may be more causes than features. Causes are inferred as the most probable ones (MAP); F is their log joint
    with the data (eq. 10.30), not a bound of the log-likelihood. Data should have zero mean and about the same variance
    in each dimension, for example after :class:`multicause.preprocessing.Whitening`; their unit does not matter.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    prior : {"cauchy", "laplace"} or Continuous, default="laplace"
        Shape of the sparse prior: ``Cauchy(scale=β)`` is eq. 10.29, by default with β = 0.3, ``Laplace(scale=1/α)`` the
        double exponential, by default with α = 2.
    noise_scale : float, optional
        Standard deviation σ of the noise, which is not learned; by default 0.3 times that of the data.
    posterior : MostProbable, optional
        How the most probable causes are computed: ``MostProbable(solver="dynamics")`` is the network of eq. 10.32; by
        default an accelerated solver that converges to the same solution. During learning, the default has a larger
        tolerance than in recognition; a given posterior is used for both.
    update : DeltaRule or LeastSquares, optional
        Update of the components, and the target variance of the causes. Least squares does not control lengths.
    batch_size : int, default=200
        Number of rows per step of the delta rule. If one batch does not hold all rows, rows with weights are drawn in
        proportion to them; a pass has as many rows as the weights add up to, but at least as many as have a positive
        weight, and at most 16 times as many.
    max_iter : int, default=50
        Maximum number of passes over the data.
    tol : float, default=1e-3
        Learning has converged when F per row rises by less than this per pass, averaged over several passes.
    init, random_state, verbose, engine
        As for :class:`multicause.LinearCauses`; by default components are random and as long as the data's standard
        deviation.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        G, transposed: the causes' projective fields.
    activity_ : ndarray of shape (n_components,)
        Scale of the prior.
    noise_variance_ : float
        Variance σ² of the noise.
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

    _constraints = {"prior": [Named(PRIORS), Prior]}

    def __init__(
        self,
        n_components: int = 10,
        *,
        prior: str | Prior = "laplace",
        noise_scale: float | None = None,
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

    def _parts(self) -> Model:
        prior = resolve(self.prior, PRIORS, "prior", Continuous)
        posterior = resolve(MostProbable() if self.posterior is None else self.posterior, {}, "posterior", Posterior)
        update = resolve(DeltaRule() if self.update is None else self.update, {}, "update", Update)
        return Model(prior, Sum(), Gaussian(), posterior, update, learn=frozenset({"components"}))

    def _solver(self) -> Solver:
        states = MostProbable(tol=LEARNING_TOLERANCE) if self.posterior is None else None
        return MiniBatches(max_iter=self.max_iter, tol=self.tol, batch_size=self.batch_size, learning_posterior=states)

    def _starts(self, initial: InitialConditions) -> Parameters:
        starts = super()._starts(initial)
        starts = starts if self.noise_scale is not None else with_relative_noise(starts, initial.moments)
        drawn = isinstance(self.init, str) and self.init == "random"
        return with_lengths_of_data(starts, initial) if drawn else starts
