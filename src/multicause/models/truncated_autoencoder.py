"""Truncated variational autoencoder: binary causes whose mean is computed by a neural network.

E. Guiraud, J. Drefs and J. Lücke, Direct Evolutionary Optimization of Variational Autoencoders with Binary Latents,
ECML PKDD 2022 (2023).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multicause.engines import Engine
from multicause.estimators.network_causes import NetworkCauses
from multicause.models.linear_causes import LinearCauses
from multicause.posteriors import Posterior
from multicause.runtime.scikit_learn import Options
from multicause.solvers.decoder_network import DecoderNetwork, initial_parameters, sizes_of, with_linear_model
from multicause.solvers.optimizers import Optimizer

# Iterations of the linear model with which the network begins, for each of its own passes.
LINEAR_ITERATIONS = 5


class TruncatedAutoencoder(NetworkCauses):
    """TVAE: a decoder network with binary causes, whose posterior is truncated to evolved states instead of an encoder.

    Causes are independent, and a network of leaky rectified linear units computes the mean of the data::

        p(s) = Π_h π_h^{s_h} (1 − π_h)^{1 − s_h}
        μ(s) = W_L φ(… φ(W_1 s + b_1) …) + b_L,  φ(a) = max(a, 0.01 a)
        p(y | s) = N(y; μ(s), σ² I)

    The bound F = Σ_n log Σ_{s ∈ K_n} p(s, y_n) over the states K_n of each row is maximized: states are bred by their
    log joint, weights follow the gradient of F, and π and σ² are replaced after every pass over the data by

        π_h = Σ_n ⟨s_h⟩ / N,  σ² = Σ_n ⟨‖y_n − μ(s)‖²⟩ / (N D).

    Parameters
    ----------
    n_components : int, default=10
        Number H of causes.
    layers : tuple of int, optional
        Numbers of hidden units, from the causes to the data; by default one layer of twice as many units as causes. An
        empty tuple gives a linear decoder.
    posterior : {"evolved", "beam"}, Evolved or Beam, default="evolved"
        States of a row, see :class:`multicause.OwnCauses`.
    optimizer : {"adam", "momentum"} or Optimizer, default="adam"
        Optimizer of the weights.
    init : {"data", "linear"}, default="data"
        Initial network: a linear model of differences of rows, or the one that :class:`LinearCauses` learns from the
        rows; every layer must have a unit for each cause. With tens of causes that nearly add up, as in patches of
        images, "linear" with a learning rate of 0.005 leads to higher bounds in fewer passes.
    learning_rate : float, default=0.02
        Learning rate of the first pass, relative to the root mean square of the first weights of each layer.
    schedule : {"cosine", "linear", "constant"}, default="cosine"
        How the learning rate falls to a hundredth of its first value over ``max_iter`` passes.
    batch_size, max_iter, tol : int, int and float, default=200, 100 and 1e-4
        As for :class:`multicause.OwnCauses`.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        What each cause adds to the mean of the data when it is the only active one: μ(e_h) − μ(0).
    activity_ : ndarray of shape (n_components,)
        Probabilities π of the causes.
    noise_variance_ : float
        σ².
    parameters_ : dict
        Weights and biases of the network, log odds of π, and log σ².
    lower_bound_, lower_bounds_, n_iter_, converged_, outcome_, n_features_in_
        As for :class:`multicause.OwnCauses`.

    Examples
    --------
    >>> from multicause import TruncatedAutoencoder
    >>> from multicause.datasets import make_bars
    >>> bars = make_bars(300, size=3, noise="gaussian", noise_scale=1.0, random_state=0)
    >>> model = TruncatedAutoencoder(6, max_iter=50, tol=0.01, random_state=0).fit(bars.data)
    >>> model.reconstruct(bars.data).shape, model.transform(bars.data).shape
    ((300, 9), (300, 6))
    """

    _constraints = {"init": [Options(str, {"linear", "data"})]}

    def __init__(
        self,
        n_components: int = 10,
        *,
        layers: tuple[int, ...] | None = None,
        posterior: str | Posterior = "evolved",
        optimizer: str | Optimizer = "adam",
        init: str = "data",
        learning_rate: float = 0.02,
        schedule: str = "cosine",
        batch_size: int = 200,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.layers = layers
        self.posterior = posterior
        self.optimizer = optimizer
        self.init = init
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _joint_model(self) -> DecoderNetwork:
        return DecoderNetwork()

    def _initial(self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> Any:
        parameters = initial_parameters(X, weights, [int(self.n_components), *self._hidden()], random)
        if self.init == "data":
            return parameters
        if min(self._hidden(), default=self.n_components) < self.n_components:
            raise ValueError(
                f"init='linear' needs layers of at least one unit for each of the {self.n_components} causes; got "
                f"layers={self.layers}. Use init='data' or wider layers."
            )
        linear = self._linear_model(X - parameters["biases"][-1].astype(X.dtype), weights, random)
        return with_linear_model(parameters, linear.components_, linear.activity_, linear.noise_variance_)

    def _linear_model(self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> LinearCauses:
        """Return linear causes of the rows."""
        n_iter = LINEAR_ITERATIONS * int(self.max_iter)
        model = LinearCauses(self.n_components, max_iter=n_iter, random_state=random, engine=self.engine)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, sample_weight=weights)
        return model

    def _sizes(self, parameters: Any) -> Any:
        return sizes_of(parameters)
