"""Energy-based components: ICA as a density model that is defined by energies.

EBM01: G. E. Hinton, M. Welling, Y. W. Teh and S. K. Osindero, A New View of ICA, Proceedings of the International
Conference on Independent Component Analysis and Blind Signal Separation (2001).
"""

from multicause.estimators.energy import EnergyEstimator


class EnergyComponents(EnergyEstimator):
    """Filters of an energy-based model, learned by contrastive divergence: ICA, also overcomplete and layered.

    Hidden activities are functions of the observation, not causes of it, and each costs energy (EBM01 eq. 1 to 3)::

        z = K (x − μ)                       centring and whitening
        h_j = w_jᵀ z                        j = 1 … H, with H below, equal to or above the number of dimensions
        E(z) = Σ_j E_j(h_j),  p(z) = exp(−E(z)) / Z

    With ``layers``, a network computes further activities from these, which cost energy too (EBM01 fig. 8). With as
    many components as dimensions and one layer this is ICA, and Z is known (eq. 5). With fewer, directions that no
    filter sees are modelled as Gaussian. With more, or several layers, learning needs no Z, and
    :meth:`estimate_log_partition` estimates it.

    Parameters
    ----------
    n_components : int, optional
        Number H of filters; by default as many as whitened dimensions.
    expert : {"logistic", "student"}, Expert or callable, default="logistic"
        Energy of a hidden activity: −log σ(h)(1 − σ(h)) (eq. 11), γ_j log(1 + h²) with learned γ_j (eq. 12), an object,
        or a JAX function of activities that returns the energy of each.
    layers : tuple of int, default=()
        Sizes of further layers.
    nonlinearity : {"sigmoid", "tanh", "log_square"}, default="sigmoid"
        Function applied to the units of a layer before they enter the next layer.
    sampler : {"hamiltonian", "corrected_langevin", "langevin", "metropolis", "equilibrium", "exact"} or Sampler
        Source of the model's expectation in the gradient: Markov chains, independent samples ("equilibrium"), or the
        gradient of log Z ("exact"). The last two need a known Z. Sampler objects such as
        ``Hamiltonian(n_leapfrog=30)`` have settings.
    n_steps : int, default=1
        Steps of the chains in one update. EBM01 has 20 for "metropolis" and "langevin", 10 for "corrected_langevin".
    persistent : bool, default=False
        Whether chains continue from their state in the last update instead of starting at the data.
    whiten : {"pca", "zca"} or None, default="pca"
        Whitening; with None the data are only centred.
    n_whitened : int, optional
        Number of principal components that are kept, with ``whiten="pca"``; the density is then that of the projection
        on these.
    batch_size : int or None, default=100
        Number of rows in a mini-batch, drawn with replacement; with None each update uses all rows.
    learning_rate, final_learning_rate : float, default=0.05 and a hundredth of it
        Learning rate of the first and of the last update; it falls linearly.
    momentum : float, default=0.9
        Fraction of its velocity that a parameter keeps from one update to the next.
    weight_decay : float, default=0.0
        Strength of the weight decay, which shrinks filters and weights towards zero.
    init : {"random", "unit"} or array-like of shape (n_components, n_features), default="random"
        Initial filters: Gaussian with standard deviation 0.1, random with norm one, or a given array in the space of X.
    max_iter : int, default=5000
        Number of updates, one for each mini-batch.
    tol : float, default=0.1
        The fit has converged if filters moved by less than this fraction of their size in the last quarter of learning
        (by the sum of the rates; the second half of the updates by default), and the sampler has found its step size.
    estimate_partition : bool, default=False
        Whether a fit ends with :meth:`estimate_log_partition`, so that scores of different models can be compared.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Filters in the space of X: activities of the first layer are ``(X - mean_) @ components_.T``.
    whitened_components_ : ndarray of shape (n_components, n_whitened)
        Filters w_j in whitened space; with ``whiten="zca"`` they are images like the data.
    mixing_ : ndarray of shape (n_features, n_components)
        Pseudo-inverse of the filters: the contribution of each activity to the data.
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    exponents_ : ndarray of shape (n_components,) or None
        γ_j of the experts "student".
    lower_bound_, lower_bounds_ : float, ndarray of shape (n_rounds,)
        Mean log density of all rows at the end, and of the rows of each round of updates; NaN if Z is not known.
    contrasts_ : ndarray of shape (n_rounds,)
        ⟨E⟩_samples − ⟨E⟩_data of each round, which is zero if samples and data have the same mean energy.
    acceptance_rates_ : ndarray of shape (n_rounds,)
        Mean acceptance rate of the chains in each round.
    step_size_ : float
        Step size of the chains at the end of the fit.
    log_partition_ : LogPartition or None
        log Z and its standard error, which is zero if Z is known; None if it was not estimated.
    n_rejected_ : int
        Number of proposals that were rejected because their energy was not finite.
    drift_ : float
        Distance that filters moved in the last quarter of learning, relative to their size.
    n_iter_ : int
        Number of updates that were made.
    converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import EnergyComponents
    >>> random = np.random.RandomState(0)
    >>> sources = random.laplace(size=(2000, 3))
    >>> X = sources @ random.normal(size=(3, 3))
    >>> model = EnergyComponents(max_iter=1000, random_state=0).fit(X)
    >>> correlations = np.abs(np.corrcoef(model.transform(X).T, sources.T)[:3, 3:])
    >>> bool((correlations.max(axis=0) > 0.95).all())  # each source has a component of its own
    True
    """
