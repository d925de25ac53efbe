"""The Helmholtz machine: binary causes in layers, with a recognition network that infers them.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10, after P. Dayan, G. E. Hinton,
R. M. Neal and R. S. Zemel, The Helmholtz machine, Neural Computation 7 (1995) 889–904.
"""

import itertools
from numbers import Integral
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from multicause import annealing as schedules
from multicause.arrays import double_precision, key_from
from multicause.combinations import Combination, Sum
from multicause.em.initialization import InitialConditions, first_moments
from multicause.em.results import FitResult, one_start
from multicause.engines import Data, Engine
from multicause.estimators.base import outcome_of_batch, warn_of
from multicause.estimators.causal import CausalEstimator, FitProblem
from multicause.estimators.summary import ModelSummary
from multicause.model import Model, Parameters, interned
from multicause.noises import LogisticBernoulli, Noise
from multicause.noises.logistic import MARGIN
from multicause.outcomes import Outcome
from multicause.parts import PartChoice, resolve
from multicause.posteriors import Posterior, RecognitionNetwork
from multicause.priors import Layered
from multicause.priors.layered import SMALL
from multicause.solvers.wake_sleep import learn_by_wake_and_sleep
from multicause.updates.base import Update
from multicause.updates.wake_sleep import WakeSleep
from multicause.wiring import check


class HelmholtzMachine(CausalEstimator):
    """A Helmholtz machine: a generative network from causes down to binary data, and a recognition network upwards.

    TN10 eq. 10.39–10.44 and its appendix, with f the logistic function::

        P[v] = Π_a f(g_a)^{v_a} (1 − f(g_a))^{1 − v_a}
        P[u | v] = Π_b f(h_b + [G·v]_b)^{u_b} (1 − …)^{1 − u_b}
        Q[v; u, W] = Π_a f(w_a + [W·u]_a)^{v_a} (1 − …)^{1 − v_a}

    In the wake phase, the generative weights learn from data and causes sampled by the recognition network; in the
    sleep phase, the recognition weights learn from samples of the generative model ("fantasies"). :meth:`sample` draws
    fantasies, :meth:`transform` returns the recognition probabilities, :meth:`free_energy` an estimate of F by sampled
    causes. :meth:`recognize` lists the most probable states among the sampled ones and those that a search finds from
    them; their probabilities are shares of Σ p(v, u) over these states, where p(v, u) is exact for one layer of causes
    and estimated by samples of the higher causes otherwise.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes next to the data.
    higher : tuple of int, default=()
        Number of causes in each layer above them.
    update : WakeSleep, optional
        Learning rate, number of particles and sign of the weights. ``WakeSleep(n_particles=1)`` is the plain rule of
        the chapter; by default 10 weighted particles (reweighted wake–sleep).
    posterior : RecognitionNetwork, optional
        Number of states that are drawn to estimate F and to start the search for the most probable states.
    activity : float or array-like of shape (n_components,), optional
        Initial probability of each cause; by default two active causes per row.
    batch_size : int, default=20
        Number of rows per step. Rows with weights are drawn in proportion to them; a pass has as many rows as the
        weights add up to, but at least as many as have a positive weight, and at most 16 times as many.
    max_iter : int, default=100
        Maximum number of passes over the data.
    tol : float, default=1e-3
        Learning has converged when F per row rises by less than this per pass, averaged over several passes.
    n_init : int, default=1
        Number of random starts; the one with the highest F is kept.
    init : "random" or array-like of shape (n_components, n_features), default="random"
        Initial generative weights G.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_, projective_fields_ : ndarray of shape (n_components, n_features)
        G, transposed: the contribution of each cause to the logit of each dimension.
    receptive_fields_ : ndarray of shape (n_components, n_features)
        W: the contribution of each dimension to the logit of a cause.
    bias_ : ndarray of shape (n_features,)
        Generative bias h.
    activity_ : ndarray of shape (n_components,)
        Frequency with which each cause is active.
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        Mean F per row in each pass, while learning, and at the end.
    lower_bound_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; an iteration is a pass over the data.

    Examples
    --------
    >>> from multicause import HelmholtzMachine
    >>> from multicause.datasets import make_bars
    >>> X = make_bars(200, value=1.0, noise=None, random_state=0).data
    >>> HelmholtzMachine(10, max_iter=2, tol=0, random_state=0).fit(X).sample(3, random_state=0)[0].shape
    (3, 25)
    """

    _exact_blocks = True
    _parameter_constraints: dict[str, list[Any]] = {
        **{
            name: CausalEstimator._parameter_constraints[name]
            for name in [
                "n_components",
                "update",
                "posterior",
                "activity",
                "max_iter",
                "tol",
                "n_init",
                "init",
                "random_state",
                "verbose",
                "engine",
            ]
        },
        "higher": [tuple, list],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }
    summary = ModelSummary(
        "P[v] = Π f(g); P[u|v] = Π f(h + G·v)",
        "Q[v; u, W] = Π f(w + W·u)",
        "wake: G ← G + ε(u − f(h + G·v))v, g, h alike; sleep: W ← W + ε(v − f(w + W·u))u, w alike",
    )
    annealing = None
    repair = False
    noise_scale = None
    learn: tuple[str, ...] = ("components", "activity", "noise")
    bias_: np.ndarray

    def __init__(
        self,
        n_components: int = 10,
        *,
        higher: tuple[int, ...] = (),
        update: Update | None = None,
        posterior: Posterior | None = None,
        activity: float | ArrayLike | None = None,
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
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream by one wake–sleep pass over its rows."""
        first = not hasattr(self, "components_")
        model, data = self._receive(X, sample_weight)
        random = check_random_state(self.random_state)
        n_batches = 0 if first else self.n_iter_
        with double_precision():
            data = self._in_blocks(data, model, 1, fitted=not first)
            if first:
                starts = self._starts(InitialConditions(model, first_moments(data), data, random, 1))
            else:
                starts = one_start(self._parameters)
            # Fold in the batch number: otherwise the same seed would draw the same samples for every batch.
            key = jax.random.fold_in(key_from(random), n_batches)
            result = learn_by_wake_and_sleep(
                model, data, starts, batch_size=self.batch_size, max_iter=1, tol=0.0, key=key
            )
            history = np.empty(0) if first else self.lower_bounds_
            self._keep(model, result.parameters)
            outcome = outcome_of_batch(bool(np.isfinite(result.bound)))
            bounds = np.array([*history, result.bounds[0]])
            result = result._replace(bounds=bounds, temperatures=np.ones(len(bounds)), outcome=outcome)
            self._keep_history(result._replace(n_rounds=n_batches + 1, converged=False), schedules.NoAnnealing())
        self.evidence_threshold_ = -np.inf
        if outcome is Outcome.NON_FINITE:
            warn_of(outcome, self)
        return self

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return the probability that each dimension is one, given causes (n_samples, n_components)."""
        logits = super().inverse_transform(S)
        return expit(logits + self.bias_).astype(logits.dtype)

    @property
    def projective_fields_(self) -> np.ndarray:
        """Projective fields G, the generative weights: (n_components, n_features)."""
        return self.components_

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W, the recognition weights: (n_components, n_features)."""
        return np.asarray(self._parameters.posterior["weights_0"]).T

    def _combination(self, noise: Noise) -> Combination:
        return Sum()

    def _accepts_negative(self) -> bool:
        return False

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names and None stand for in :meth:`_wire`."""
        return {
            **super()._part_choices(),
            "posterior": PartChoice(defaults=lambda: (RecognitionNetwork(),)),
            "update": PartChoice(defaults=lambda: (WakeSleep(),)),
        }

    def _wire(self, data: Data) -> Model:
        prior = Layered(higher=tuple(int(size) for size in self.higher))
        prior.validate()
        update = resolve(WakeSleep() if self.update is None else self.update, {}, "update", WakeSleep)
        network = RecognitionNetwork() if self.posterior is None else self.posterior
        posterior = resolve(network, {}, "posterior", RecognitionNetwork)
        model = Model(prior, Sum(), LogisticBernoulli(), posterior, update, learn=frozenset(self.learn))
        return interned(check(model, type(self)))

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return small random weights, and biases that give causes and data their frequencies."""
        starts = super()._starts(initial)
        model, data = initial.model, initial.data
        sizes = (data.n_features, self.n_components, *model.prior.higher)

        def small(*shape: int) -> jax.Array:
            return jnp.asarray(SMALL * initial.random.normal(size=(initial.n_starts, *shape)), dtype=data.dtype)

        components, noise = starts.components, dict(starts.noise)
        nonnegative = model.update.nonnegative
        if isinstance(self.init, str):
            components = jnp.abs(small(*components.shape[1:])) if nonnegative else small(*components.shape[1:])
        if nonnegative:
            # Non-negative weights can only raise probabilities, so the data must be zero if no cause is active.
            noise["bias"] = jnp.full_like(noise["bias"], np.log(MARGIN) - np.log1p(-MARGIN))
        prior = {
            name: small(*value.shape[1:]) if name.startswith("weights") else value
            for name, value in starts.prior.items()
        }
        recognition: dict[str, Any] = {}
        for k, (below, above) in enumerate(itertools.pairwise(sizes)):
            recognition[f"weights_{k}"] = small(below, above)
            recognition[f"bias_{k}"] = prior[f"bias_{k + 1}"]
        return Parameters(components, prior, noise, recognition)

    def _learn(self, problem: FitProblem) -> tuple[FitResult, schedules.Annealing]:
        how: dict[str, Any] = {"batch_size": self.batch_size, **problem.settings}
        result = learn_by_wake_and_sleep(problem.model, problem.data, problem.starts, **how)
        return result, schedules.NoAnnealing()

    @staticmethod
    def _learned(model: Model, parameters: Parameters) -> dict[str, Any]:
        return {**CausalEstimator._learned(model, parameters), "bias_": np.array(parameters.noise["bias"])}
