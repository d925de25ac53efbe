"""An approximate posterior computed by a recognition network with its own weights: TN10 eq. 10.41–10.43."""

from functools import cached_property

import jax
import jax.numpy as jnp

from multicause.arrays import Array, matmul, observed_data
from multicause.compatibility import Capability, Expectation, Link, Requirements, Rule, Support
from multicause.expectations import Inference, Recognized
from multicause.generative import GenerativeModel
from multicause.posteriors.base import Posterior
from multicause.posteriors.expectations.row_totals import ScaleFreeTotals
from multicause.posteriors.state_search import best_distinct, n_found, search
from multicause.priors.layered_networks import (
    Layers,
    Machine,
    Mask,
    importance,
    masked,
    n_causes,
    recognition_logits,
)
from multicause.records import Block, Parameters

# Number of arrays (n, H + D) that are in memory at once for each sample.
ARRAYS = 6
# Seed of the samples from which F is estimated: the same rows always get the same random numbers.
SEED = 10
# Maximum number of turns by which the random numbers of a row are shifted for each dimension that is one.
TURNS = 1e6


class RecognitionNetwork(Posterior):
    """Recognition network Q[v; u, W] = Π_a f(w_a + [W·u]_a)^{v_a} (1 − …)^{1 − v_a}, likewise for higher layers.

    Parameters
    ----------
    n_samples : int, default=20
        Number of states drawn from Q for each row, from which F and the log evidence are estimated. They are also the
        initial states of the search for the most probable states.
    """

    requires = Requirements(
        supports=frozenset({Support.LAYERED}),
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.LOGIT}),
        capabilities=frozenset({Capability.WAKE_SLEEP}),
    )
    offers = frozenset({Expectation.NETWORK})

    def __init__(self, *, n_samples: int = 20) -> None:
        self.n_samples = n_samples

    def validate(self) -> None:
        """Raise ValueError unless at least one state is drawn."""
        if self.n_samples < 1:
            raise ValueError(f"n_samples of RecognitionNetwork must be at least 1; got {self.n_samples!r}.")

    @property
    def bound_label(self) -> str:
        """Description of the free energy F (TN10 eq. 10.42)."""
        return "lower bound of the log evidence, estimated from samples"

    @property
    def evidence_label(self) -> str:
        """Description of the log evidence, which is estimated by importance sampling."""
        return "log evidence, estimated from samples"

    def n_states(self, n_components: int) -> int:
        """Return the number of sampled states and of those found from them, at most 2^H."""
        return int(min(n_found(self.n_samples, n_components), 2**n_components))

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: some numbers for each sampled state, and a few for each listed state."""
        n_listed = n_found(self.n_samples, n_components)
        return itemsize * ARRAYS * (self.n_samples * (n_components + n_features) + n_listed) + n_listed * n_components

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of the weights."""
        return itemsize * ARRAYS * n_components * n_features

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return probabilities of the lowest causes, and samples of all causes."""
        return Sampled(model, parameters, block, self)


def machine_of(model: GenerativeModel, parameters: Parameters) -> Machine:
    """Return both networks of a Helmholtz machine, from the parameters of its parts."""
    lowest = {"weights": parameters.components, "bias": parameters.noise["bias"]}
    upper = model.prior.layers(parameters.prior)
    return Machine((lowest, *upper), recognition_layers(parameters.posterior))


def recognition_layers(parameters: dict[str, Array]) -> Layers:
    """Return the layers of a recognition network, from the data upwards."""
    depth = len(parameters) // 2
    return tuple({"weights": parameters[f"weights_{k}"], "bias": parameters[f"bias_{k}"]} for k in range(depth))


class Sampled(ScaleFreeTotals):
    """Expectations under q_n(v) of a recognition network; those of p(v, u) are means over sampled states."""

    def __init__(
        self, model: GenerativeModel, parameters: Parameters, block: Block, posterior: RecognitionNetwork
    ) -> None:
        self._model, self._parameters, self._posterior = model, parameters, posterior
        self.rows, self.row_weights = block.rows, block.weights
        self._machine = machine_of(model, parameters)
        self._mask: Mask | None = None
        self._data = block.rows
        if model.missing:
            self._data, self._mask = masked(self._machine, block.rows)
        self.observed = None if self._mask is None else self._mask.observed
        #: f(w + W·u): (n, H).
        self.mean_causes = jax.nn.sigmoid(recognition_logits(self._machine.recognition[0], self._data, self._mask))

    @cached_property
    def _uniforms(self) -> Array:
        """Random numbers of each row for the causes of all layers: (K, n, ΣH)."""
        # Numbers are a function of the row's content: they do not depend on its position or on other rows. Numbers
        # common to all rows are shifted, modulo one, by random amounts of many turns, so that those of two different
        # rows are independent, and no generator runs for each row.
        shape = (2, self._posterior.n_samples, 1, n_causes(self._machine.recognition))
        of_causes, of_data = jax.random.split(jax.random.key(SEED))
        first, angle = jax.random.uniform(of_causes, shape, jnp.float64)
        turns = TURNS * jax.random.uniform(of_data, (self.rows.shape[1],), jnp.float64)
        turned = first + jnp.sum(observed_data(self.rows, None, self.observed) * turns, axis=1)[:, None] * angle
        return (turned - jnp.floor(turned)).astype(self.rows.dtype)

    @cached_property
    def _samples(self) -> tuple[Array, Array]:
        """States of the lowest causes (K, n, H), and log p(v, u) − log q(v | u) of each sample (n, K)."""
        states, log_ratio = importance(self._machine, self._data, self._uniforms, self._mask)
        return states[1], log_ratio.T

    @property
    def free_energy(self) -> Array:  # type: ignore[override]
        """Free energy ⟨log p(v, u) − log q(v | u)⟩ (TN10 eq. 10.42), a lower bound of log p(u) on average: (n,)."""
        return jnp.mean(self._samples[1], axis=1)

    @property
    def log_evidence(self) -> Array:  # type: ignore[override]
        """Estimate log mean p(v, u)/q(v | u), which approaches log p(u) with the number of samples: (n,)."""
        return jax.nn.logsumexp(self._samples[1], axis=1) - jnp.log(self._posterior.n_samples).astype(self.rows.dtype)

    @property
    def total_causes(self) -> Array:  # type: ignore[override]
        """Sum of the recognition probabilities, Σ_n w_n ⟨v⟩: (H,)."""
        return matmul(self.row_weights, self.mean_causes)

    @property
    def cause_data(self) -> Array:  # type: ignore[override]
        """Products of recognition probabilities and data, Σ_n w_n ⟨v⟩ u_nᵀ: (H, D)."""
        return matmul((self.mean_causes * self.row_weights[:, None]).T, self._data)

    @property
    def cause_pairs(self) -> Array:  # type: ignore[override]
        """Second moments Σ_n w_n ⟨v vᵀ⟩ under Q, in which causes are independent: (H, H)."""
        pairs = matmul((self.mean_causes * self.row_weights[:, None]).T, self.mean_causes)
        return pairs + jnp.diag(self.total_causes - jnp.diagonal(pairs))

    def mean_data(self) -> Array:
        """Return f(h + G·⟨v⟩), the probability that each dimension is one: (n, D)."""
        logits = matmul(self.mean_causes, self._parameters.components) + self._parameters.noise["bias"]
        return jax.nn.sigmoid(logits)

    def recognize(self, top: int) -> Recognized:
        """Return the most probable states, each listed once, with their shares of Σ p(v, u) over these states.

        Candidates are the sampled states and those that :func:`multicause.posteriors.state_search.search` finds from
        them. They are ranked by p(v, u) itself, not by the importance weights p/q: the weights of equal samples would
        have to be added up, and their sum depends on how often a state happened to be drawn.
        """
        higher = self._uniforms[..., self.mean_causes.shape[1] :]
        states, log_joint = search(self._machine, self._data, self._samples[0], higher, self._mask)
        return Recognized(*best_distinct(states, log_joint, top), self.log_evidence)
