"""Energy-based components: ICA as a density model that is defined by energies.

EBM01: G. E. Hinton, M. Welling, Y. W. Teh and S. K. Osindero, A New View of ICA, Proceedings of ICA 2001.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multicause.energies import Expert
from multicause.engines import Engine
from multicause.estimators.energy import EnergyEstimator
from multicause.samplers import Sampler
from multicause.solvers.optimizers import Optimizer


class EnergyComponents(EnergyEstimator):
    """Filters of an energy-based model, learned by contrastive divergence: ICA, also overcomplete and layered.

    Hidden activities are functions of the observation, not causes of it, and each costs energy (EBM01 eq. 1 to 3)::

        z = K (x − μ)                       centring and whitening
        h_j = w_jᵀ z                        j = 1 … H, with H below, equal to or above the number of dimensions
        E(z) = Σ_j E_j(h_j),  p(z) = exp(−E(z)) / Z

    With ``layers``, a network computes further activities from these, which cost energy too (EBM01 fig. 8). With as
    many components as dimensions and one layer this is ICA, and Z is known (eq. 5). With fewer, directions that no
    filter sees are Gaussian. With more, or several layers, :meth:`estimate_log_partition` estimates Z.

    Parameters
    ----------
    n_components : int, optional
        Number H of filters; by default as many as whitened dimensions.
    expert : {"logistic", "student"}, Expert or callable, default="logistic"
        Energy of an activity: −log σ(h)(1 − σ(h)) (eq. 11), γ_j log(1 + h²) (eq. 12), an object, or a JAX function.
    layers, nonlinearity : tuple of int, default=(); {"sigmoid", "tanh", "log_square"}, default="sigmoid"
        Sizes of further layers, and the function applied to the units of a layer before they enter the next one.
    sampler : {"hamiltonian", "corrected_langevin", "langevin", "metropolis", "equilibrium", "exact"} or Sampler
        Source of the model's expectation in the gradient: Markov chains, independent samples ("equilibrium"), or the
        gradient of log Z ("exact"); the last two need a known Z. Objects such as ``Hamiltonian(n_leapfrog=30)`` have
        settings; a user-defined kernel is one class (``docs/developers/add_a_sampler.md``).
    n_steps, persistent : int, default=1; bool, default=False
        Steps of the chains in one update (EBM01 has 20 for "metropolis" and "langevin", 10 for "corrected_langevin"),
        and whether chains continue from their state in the last update instead of starting at the data.
    whiten, n_whitened : {"pca", "zca"} or None, default="pca"; int, optional
        Whitening, and with "pca" the number of principal components that are kept; the density is then that of the
        projection on these. With None data are centred and divided by one number, the root of their mean variance.
    optimizer : {"momentum", "adam"} or Optimizer, default="momentum"
        Gradient descent with momentum, or one of optax: ``solvers.optimizers.Optax("rmsprop", {"decay": 0.95})``.
    learning_rate, final_learning_rate, schedule : float, default=0.05 and a hundredth of it; str, default="linear"
        Learning rate of the first and of the last update, for data of variance one, and how it falls from one to the
        other: "linear", "cosine" or "constant".
    momentum, weight_decay : float, default=0.9 and 0.0
        Fraction of its velocity that a parameter keeps from one update to the next, with ``optimizer="momentum"``, and
        strength of the weight decay, which shrinks filters and weights towards zero.
    init : {"random", "unit"} or array-like of shape (n_components, n_features), default="random"
        Initial filters: Gaussian with standard deviation 0.1, random with norm one, or a given array in the space of X.
    batch_size, max_iter, tol : int or None, default=100; int, default=5000; float, default=0.1
        Number of rows in a mini-batch, drawn with replacement (all rows with None), and number of updates. The fit has
        converged if filters moved by less than ``tol`` of their size in the last quarter of learning (by the sum of the
        rates; the second half of the updates by default), and the sampler has found its step size.
    estimate_partition : bool, default=False
        Whether a fit ends with :meth:`estimate_log_partition`, so that scores of different models can be compared.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_, mean_ : ndarray of shape (n_components, n_features) and (n_features,)
        Filters and mean in the space of X: activities of the first layer are ``(X - mean_) @ components_.T``.
    whitened_components_ : ndarray of shape (n_components, n_whitened)
        Filters w_j in whitened space; with ``whiten="zca"`` they are images like the data.
    mixing_, exponents_ : ndarray of shape (n_features, n_components); of shape (n_components,) or None
        Pseudo-inverse of the filters, the contribution of each activity to the data; γ_j of the experts "student".
    lower_bound_, lower_bounds_ : float, ndarray of shape (n_rounds,)
        Mean log density of all rows at the end, and of the rows of each round of updates; NaN if Z is not known.
    contrasts_, acceptance_rates_ : ndarray of shape (n_rounds,)
        ⟨E⟩_samples − ⟨E⟩_data of each round, which is zero if samples and data have the same mean energy, and the mean
        acceptance rate of the chains.
    step_size_, n_rejected_, drift_ : float, int, float
        Step size of the chains at the end, number of proposals that were rejected because their energy was not finite,
        and distance that filters moved in the last quarter of learning, relative to their size.
    log_partition_ : LogPartition or None
        log Z and its standard error, which is zero if Z is known; None if it was not estimated.
    n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; an iteration is an update.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import EnergyComponents
    >>> random = np.random.RandomState(0)
    >>> sources = random.laplace(size=(2000, 3))
    >>> found = EnergyComponents(max_iter=1000, random_state=0).fit_transform(sources @ random.normal(size=(3, 3)))
    >>> bool((np.abs(np.corrcoef(found.T, sources.T)[:3, 3:]).max(axis=0) > 0.95).all())  # each source is found
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        expert: str | Expert | Callable[[Any], Any] = "logistic",
        layers: tuple[int, ...] = (),
        nonlinearity: str = "sigmoid",
        sampler: str | Sampler = "hamiltonian",
        n_steps: int = 1,
        persistent: bool = False,
        whiten: str | None = "pca",
        n_whitened: int | None = None,
        batch_size: int | None = 100,
        optimizer: str | Optimizer = "momentum",
        learning_rate: float = 0.05,
        final_learning_rate: float | None = None,
        schedule: str = "linear",
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        init: str | ArrayLike = "random",
        max_iter: int = 5000,
        tol: float = 0.1,
        estimate_partition: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.expert = expert
        self.layers = layers
        self.nonlinearity = nonlinearity
        self.sampler = sampler
        self.n_steps = n_steps
        self.persistent = persistent
        self.whiten = whiten
        self.n_whitened = n_whitened
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.final_learning_rate = final_learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.estimate_partition = estimate_partition
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine
