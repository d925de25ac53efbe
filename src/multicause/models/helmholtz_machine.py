"""The Helmholtz machine: binary causes in layers, with a recognition network that infers them.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10, after P. Dayan, G. E. Hinton,
R. M. Neal and R. S. Zemel, The Helmholtz machine, Neural Computation 7 (1995) 889–904.
"""

import numpy as np
from numpy.typing import ArrayLike

from multicause.combinations import Sum
from multicause.compatibility import Capability
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.fields import NetworkFields
from multicause.estimators.settings import LEARNABLE
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.networks import network_starts
from multicause.model import Model
from multicause.noises import LogisticBernoulli
from multicause.parts import resolve
from multicause.posteriors import Posterior, RecognitionNetwork
from multicause.priors.layered import Layered, SingleLayer
from multicause.records import Parameters
from multicause.runtime.scikit_learn import Options
from multicause.solvers.optimizers import NAMES as OPTIMIZERS
from multicause.solvers.optimizers import Optax, Optimizer
from multicause.solvers.wake_sleep import WakeSleepPasses
from multicause.updates import Update, WakeSleep


class HelmholtzMachine(NetworkFields):
    """A Helmholtz machine: a generative network from causes down to binary data, and a recognition network upwards.

    TN10 eq. 10.39–10.44 and its appendix, with f the logistic function::

        P[v] = Π_a f(g_a)^{v_a} (1 − f(g_a))^{1 − v_a}
        P[u | v] = Π_b f(h_b + [G·v]_b)^{u_b} (1 − …)^{1 − u_b}
        Q[v; u, W] = Π_a f(w_a + [W·u]_a)^{v_a} (1 − …)^{1 − v_a}

    In the wake phase, the generative weights learn from data and causes sampled by the recognition network; in the
    sleep phase, the recognition weights learn from samples of the generative model ("fantasies"). :meth:`sample` draws
    fantasies, :meth:`transform` returns the recognition probabilities, :meth:`free_energy` an estimate of F by sampled
    causes. :meth:`recognize` lists the most probable states among sampled ones and those that a search finds from them,
    with shares of Σ p(v, u) over these states; p(v, u) is estimated by samples if there are higher causes.

    Parameters
    ----------
    n_components, higher : int, default=10; tuple of int, default=()
        Number H of causes next to the data, and number of causes in each layer above them.
    update : WakeSleep, optional
        Learning rate, number of particles and sign of the weights. ``WakeSleep(n_particles=1)`` is the plain rule of
        the chapter; by default 10 weighted particles (reweighted wake–sleep).
    posterior : RecognitionNetwork, optional
        Number of states that are drawn to estimate F and to start the search for the most probable states.
    activity : float or array-like of shape (n_components,), optional
        Initial probability of each cause; by default two active causes per row.
    optimizer : {"momentum", "adam"} or Optimizer, optional
        Optimizer at the update's learning rate, as for :class:`multicause.EnergyComponents`; by default plain steps.
    batch_size : int, default=20
        Number of rows per step. Rows with weights are drawn in proportion to them; a pass has as many rows as the
        weights add up to, but at least as many as have a positive weight, and at most 16 times as many.
    max_iter, tol : int, default=100; float, default=1e-3
        Maximum number of passes over the data. Learning has converged when F per row rises by less than ``tol`` per
        pass, averaged over several passes.
    n_init, init : int, default=1; "random" or array-like of shape (n_components, n_features), default="random"
        Number of random starts, of which the one with the highest F is kept, and initial generative weights G.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_, projective_fields_ : ndarray of shape (n_components, n_features)
        G, transposed: the contribution of each cause to the logit of each dimension.
    receptive_fields_ : ndarray of shape (n_components, n_features)
        W: the contribution of each dimension to the logit of a cause.
    bias_, activity_ : ndarray of shape (n_features,) and (n_components,)
        Generative bias h, and frequency with which each cause is active.
    lower_bounds_, lower_bound_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`, with the mean F per row; an iteration is a pass over the data, and
        ``lower_bounds_`` (n_iter_ + 1,) has F in each pass, while learning, and at the end.

    Examples
    --------
    >>> from multicause import HelmholtzMachine, datasets
    >>> X = datasets.make_bars(200, value=1.0, noise=None, random_state=0).data
    >>> HelmholtzMachine(10, max_iter=2, tol=0, random_state=0).fit(X).sample(3, random_state=0)[0].shape
    (3, 25)
    """

    _capabilities = frozenset({Capability.WAKE_SLEEP})
    _constraints = {"init": [Options(str, {"random"}), "array-like"]}

    def __init__(
        self,
        n_components: int = 10,
        *,
        higher: tuple[int, ...] = (),
        update: Update | None = None,
        posterior: Posterior | None = None,
        activity: float | ArrayLike | None = None,
        optimizer: str | Optimizer | None = None,
        batch_size: int = 20,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.higher = higher
        self.update = update
        self.posterior = posterior
        self.activity = activity
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _parts(self) -> Model:
        prior = Layered(higher=tuple(int(size) for size in self.higher)) if self.higher else SingleLayer()
        states = resolve(RecognitionNetwork() if self.posterior is None else self.posterior, {}, "posterior", Posterior)
        update = resolve(WakeSleep() if self.update is None else self.update, {}, "update", Update)
        return Model(prior, Sum(), LogisticBernoulli(), states, update, learn=frozenset(LEARNABLE))

    def _solver(self) -> Solver:
        optimizer = resolve(self.optimizer or Optax("sgd"), OPTIMIZERS, "optimizer", Optimizer)
        return WakeSleepPasses(
            max_iter=self.max_iter, tol=self.tol, n_starts=self.n_init, batch_size=self.batch_size, optimizer=optimizer
        )

    def _starts(self, initial: InitialConditions) -> Parameters:
        return network_starts(initial, super()._starts(initial), given=not isinstance(self.init, str))
