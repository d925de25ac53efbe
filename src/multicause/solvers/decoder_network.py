"""Log joint of binary causes whose mean is computed by a neural network, under Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.solvers.joint_model import JointModel

# Slope of a leaky ReLU for negative inputs, as in the paper.
SLOPE = 0.01
# Standard deviation of the initial weights of hidden units, relative to the identity that they are added to.
SPREAD = 0.02
# Variance of the noise below which it cannot fall, relative to the variance of the data.
LEAST_VARIANCE = 1e-6


class NetworkSums(NamedTuple):
    """Sums over rows from which the prior and the noise follow."""

    active: Array  # (H,) Σ ⟨s⟩
    n_rows: Array  # ()
    squares: Array  # () Σ ⟨(y − μ(s))²⟩ over observed values
    n_values: Array  # () number of observed values


@dataclass(frozen=True)
class DecoderNetwork(JointModel):
    """Causes s_h ~ Bernoulli(π_h) and y ~ N(μ(s), σ²) with a feed-forward network μ.

    Parameters are a dictionary: ``weights`` and ``biases`` of the layers, ``log_odds`` of the causes, ``log_variance``
    of the noise, and ``least_variance``. The last three do not follow gradients: prior and noise are known in closed
    form. Values that are NaN are missing.
    """

    def decode(self, parameters: Any, states: Array) -> Array:
        """Return the network's output for states (..., H): (..., D)."""
        *hidden, last = zip(parameters["weights"], parameters["biases"], strict=True)
        for weight, bias in hidden:
            states = jax.nn.leaky_relu(matmul(states, weight) + bias, SLOPE)
        return matmul(states, last[0]) + last[1]

    def log_joint(self, parameters: Any, states: Array, rows: Array) -> Array:
        """Return log p(s) + log p(y | s) of the observed values: (n, S)."""
        log_odds, log_variance = jax.lax.stop_gradient((parameters["log_odds"], parameters["log_variance"]))
        prior = matmul(states, log_odds) - jnp.sum(jnp.logaddexp(0, log_odds))
        squares, n_values = self._errors(parameters, states, rows)
        constant = n_values * (log_variance + jnp.log(2 * jnp.pi))
        return (prior - 0.5 * (squares / jnp.exp(log_variance) + constant[:, None])).astype(rows.dtype)

    def expectations(
        self, parameters: Any, states: Array, probabilities: Array, rows: Array, shown: Array
    ) -> NetworkSums:
        """Return sums over rows of expected states and squared errors."""
        squares, n_values = self._errors(parameters, states, rows)
        means = jnp.einsum("ns,nsh->nh", probabilities, states)
        return NetworkSums(
            jnp.sum(shown[:, None] * means, axis=0, dtype=float),
            jnp.sum(shown, dtype=float),
            jnp.sum(shown[:, None] * probabilities * squares, dtype=float),
            jnp.sum(shown * n_values, dtype=float),
        )

    def solve(self, parameters: Any, sums: NetworkSums) -> Any:
        """Return the parameters with the probabilities of the causes and the variance of the noise replaced."""
        least = 0.5 / sums.n_rows
        activity = jnp.clip(sums.active / sums.n_rows, least, 1 - least)
        variance = jnp.maximum(sums.squares / jnp.maximum(sums.n_values, 1), parameters["least_variance"])
        solved = {"log_odds": jnp.log(activity) - jnp.log1p(-activity), "log_variance": jnp.log(variance)}
        return {**parameters, **{name: value.astype(parameters[name].dtype) for name, value in solved.items()}}

    def _errors(self, parameters: Any, states: Array, rows: Array) -> tuple[Array, Array]:
        """Return Σ_d (y_d − μ_d(s))² over observed values (n, S), and the number of these (n,)."""
        observed = ~jnp.isnan(rows)
        errors = jnp.where(observed, rows, 0)[:, None] - self.decode(parameters, states)
        squares = jnp.sum(jnp.where(observed[:, None], errors, 0) ** 2, axis=-1)
        return squares, jnp.sum(observed, axis=-1).astype(rows.dtype)


def initial_parameters(
    X: np.ndarray, weights: np.ndarray, layers: Sequence[int], random: np.random.RandomState
) -> dict[str, Any]:
    """Return parameters with which the network begins as a linear model of differences between rows.

    ``layers`` has the number of causes and those of hidden units. Hidden units begin with the identity, as causes are
    not negative, and with small random weights that make them differ; if there are more units than inputs, the further
    ones begin with random weights and thresholds.
    """
    observed = ~np.isnan(X) & (weights > 0)[:, None]
    counts = np.maximum((observed * weights[:, None]).sum(axis=0), np.finfo(float).tiny)
    mean = (np.where(observed, X, 0) * weights[:, None]).sum(axis=0, dtype=float) / counts
    centred = np.where(observed, X - mean, 0)
    variance = float((centred**2 * weights[:, None]).sum(dtype=float) / counts.sum()) or 1.0
    H = layers[0]
    hidden, thresholds = [], []
    for n_inputs, n_units in pairwise(layers):
        further = np.arange(n_units) >= n_inputs
        spread = np.where(further, 1.0, SPREAD)
        hidden.append(np.eye(n_inputs, n_units) + spread * random.normal(size=(n_inputs, n_units)))
        thresholds.append(np.where(further, random.uniform(-1, 0, n_units), 0.0))
    probable = weights / weights.sum(dtype=float)
    chosen = centred[random.choice(len(X), size=layers[-1], p=probable)]
    last = 0.5 * chosen + 0.1 * np.sqrt(variance) * random.normal(size=chosen.shape)
    activity = min(0.5, 2 / H)
    return {
        "weights": (*hidden, last),
        "biases": (*thresholds, mean),
        "log_odds": np.full(H, np.log(activity) - np.log1p(-activity)),
        "log_variance": np.log(variance),
        "least_variance": np.asarray(LEAST_VARIANCE * variance),
    }


def with_linear_model(
    parameters: dict[str, Any], components: np.ndarray, activity: np.ndarray, variance: float
) -> dict[str, Any]:
    """Return initial parameters with which the network begins as a given linear model of the data without their mean.

    Hidden units beyond the number of causes begin with small effects.
    """
    *hidden, last = parameters["weights"]
    H = len(components)
    least = np.finfo(np.float32).eps
    inside = np.clip(np.asarray(activity, dtype=float), least, 1 - least)
    return {
        **parameters,
        "weights": (*hidden, np.concatenate([components, SPREAD * last[H:]])),
        "log_odds": np.log(inside) - np.log1p(-inside),
        "log_variance": np.log(max(float(variance), float(parameters["least_variance"]))),
    }


def sizes_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the size of each array to which steps are relative: that of the weights of its layer."""
    of_layers = tuple(np.sqrt(np.mean(np.square(weight))) for weight in parameters["weights"])
    others = {name: np.asarray(1.0) for name in ("log_odds", "log_variance", "least_variance")}
    return {"weights": of_layers, "biases": of_layers, **others}
