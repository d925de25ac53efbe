"""Spike-and-slab causes: few causes are active in each row, and each active cause has a real-valued strength.

I. Goodfellow, A. Courville and Y. Bengio, Large-Scale Feature Learning With Spike-and-Slab Sparse Coding, ICML 2012.
A.-S. Sheikh, J. A. Shelton and J. Lücke, A Truncated EM Approach for Spike-and-Slab Sparse Coding, JMLR 15 (2014)
2653–2687. M. K. Titsias and M. Lázaro-Gredilla, Spike and Slab Variational Inference for Multi-Task and Multiple Kernel
Learning, NIPS 2011.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause import annealing as schedules
from multicause.combinations import Sum
from multicause.compatibility import Capability
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.settings import product
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.scaling import with_slabs
from multicause.model import Model
from multicause.noises import Noise
from multicause.posteriors import Beam, Posterior
from multicause.priors import SpikeAndSlab
from multicause.priors.spike_and_slab import PRIOR_LEARNABLE
from multicause.records import Parameters
from multicause.search.replacement import Replacement


class SpikeAndSlabCauses(CausalEstimator):
    """Spike-and-slab sparse coding (GSC, SSSC): causes are on or off, and have a normally distributed strength.

    The model of Sheikh et al. (2014) with independent slabs::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        p(z) = Π_h N(z_h; μ_h, ψ_h)
        p(y | s, z) = Π_d N(y_d; Σ_h s_h z_h W_hd, σ²)

    Given the spikes s, the posterior of the slabs z is normal and known in closed form; a beam search finds the spikes
    of each row. :meth:`transform` returns ⟨s∘z⟩, and :meth:`recognize` spikes and slabs. The lengths of components and
    the scales of slabs are not identifiable separately, so components have length one if ψ is learned.

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes, which may be larger than the number of features.
    noise : {"gaussian", "diagonal_gaussian"} or Noise, default="gaussian"
        Noise with one variance σ², or with one for each feature.
    posterior : {"beam", "exact"} or Posterior, optional
        Spikes that are considered for a row; by default ``Beam()``.
    annealing : {"auto"}, Annealing or None, default="auto"
        "auto" is EM in which rarely used components are replaced from time to time by residuals of the rows that are
        explained worst; None is plain EM. A schedule sets the temperature of the spikes.
    learn : tuple of str, default=("components", "activity", "slab_variance", "noise")
        Names among "components" (W), "activity" (π), "slab_mean" (μ, otherwise zero), "slab_variance" (ψ) and "noise".
    n_init : int, default=1
        Number of random starts; the best by the bound continues after half of all iterations. Increase it, for
        example to 5, for tables of some hundred rows and few features: there a single start often converges to a
        local optimum, whose bound is clearly below that of the causes that generated the data.
    activity, noise_scale, max_iter, tol, random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.
    init : {"random", "data"} or array-like of shape (n_components, n_features), default="random"
        Initial components, which are normalized to length one: random numbers, rows of the data, or a given array.

    Attributes
    ----------
    components_, activity_, slab_mean_, slab_variance_ : ndarray of shape (n_components, n_features) or (n_components,)
        W, π, μ and ψ.
    noise_variance_, lower_bound_, lower_bounds_, temperatures_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import SpikeAndSlabCauses
    >>> random = np.random.RandomState(0)
    >>> X = random.laplace(size=(500, 4)) @ random.normal(size=(4, 8)) + 0.1 * random.normal(size=(500, 8))
    >>> SpikeAndSlabCauses(4, random_state=0).fit_transform(X).shape
    (500, 4)
    """

    _capabilities = frozenset({Capability.SLABS})

    def __init__(
        self,
        n_components: int = 10,
        *,
        noise: str | Noise = "gaussian",
        posterior: str | Posterior | None = None,
        annealing: str | schedules.Annealing | None = "auto",
        learn: tuple[str, ...] = ("components", "activity", "slab_variance", "noise"),
        activity: float | ArrayLike | None = None,
        noise_scale: float | None = None,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.noise = noise
        self.posterior = posterior
        self.annealing = annealing
        self.learn = learn
        self.activity = activity
        self.noise_scale = noise_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _parts(self) -> Model:
        learned = tuple(name for name in PRIOR_LEARNABLE if name in self.learn)
        names = ("components", "noise", *PRIOR_LEARNABLE)
        model = product(self, Sum(), prior=SpikeAndSlab(learn=learned), posterior=Beam(), learnable=names)
        # The prior is learned if ``learn`` has any name of the prior, which itself knows which.
        own = {"activity"} if learned else set()
        return replace(model, learn=model.learn & {"components", "noise"} | own)

    def _solver(self) -> Solver:
        if self.annealing != "auto":
            return super()._solver()
        return Replacement(max_iter=self.max_iter, tol=self.tol, n_starts=self.n_init)

    def _starts(self, initial: InitialConditions) -> Parameters:
        return with_slabs(super()._starts(initial), initial.moments)

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        return {f"{name}_": np.array(parameters.prior[name]) for name in ("slab_mean", "slab_variance")}
