"""Methods of fitted energy-based models: activities, energies, densities, samples, saving and loading."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from multicause.arrays import bytes_from, check_room, compiled, double_precision, key_from
from multicause.energies import Energy, EnergyParameters, Expert
from multicause.engines import Data
from multicause.engines.dask import is_distributed
from multicause.estimators.base import BaseModel, ValueLabels
from multicause.model import Block
from multicause.persistence.row_writing import check_out, write_rows
from multicause.preparation.whitening import WhiteningMap, whiten
from multicause.samplers import Sampler, annealed
from multicause.samplers.annealed import ARRAYS, LogPartition
from multicause.solvers import contrastive_divergence as cd

# Number of intermediate densities, and of further steps at the model's density, when samples are drawn.
SAMPLING_PATH, SAMPLING_STEPS = 200, 200


class EnergyDensity(BaseModel):
    """Fitted energy-based model. It keeps the state of learning, so that :meth:`partial_fit` can continue."""

    _results = ("contrasts_", "acceptance_rates_", "drift_")
    mixing_: np.ndarray
    mean_: np.ndarray
    log_partition_: LogPartition | None
    n_features_in_: int
    _method: cd.Method
    _course: cd.UpdateState
    _whitening: WhiteningMap

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the hidden activities of all layers, concatenated: (n_samples, n_components + sum of layers).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(_activities, X, out)

    def energy(self, X: ArrayLike) -> np.ndarray:
        """Compute the energy E(z) of each row: (n_samples,)."""
        return self._by_rows(_energies, X)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the log density of each row in the space of X: (n_samples,).

        If Z is neither known nor estimated (``log_partition_`` is None), the density is not normalised: rows can be
        compared, models cannot. :meth:`estimate_log_partition` or ``estimate_partition=True`` normalises it.
        """
        energy = self.energy(X)
        log_partition = 0.0 if self.log_partition_ is None else self.log_partition_.value
        return (self._whitening.log_volume - log_partition - energy).astype(energy.dtype)

    def _value_labels(self) -> ValueLabels:
        """Return the names of densities, which may not be normalised."""
        known = "log density" if self.log_partition_ is not None else "log density without normalisation"
        return ValueLabels("log density", "log density", known)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` if it is given.

        It warns if densities are not normalised, as a grid search would compare them.
        """
        score = super().score(X, y, sample_weight)
        if self.log_partition_ is None:
            warnings.warn(
                "The density of this model is not normalised, so its score must not be compared with that of another "
                "model. Use estimate_partition=True, or estimate_log_partition() after the fit.",
                UserWarning,
                stacklevel=2,
            )
        return score

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return rows (n_samples, n_features) with these first-layer activities, by the pseudo-inverse of the filters.

        Activities of further layers may be included; they follow from the first and are not used.
        """
        check_is_fitted(self)
        S, H = np.asarray(S, dtype=self.components_.dtype), len(self.components_)
        if S.ndim != 2 or S.shape[1] not in (H, self._n_features_out):
            raise ValueError(f"Activities must have shape (n_samples, {self._n_features_out}); got {S.shape}.")
        if not np.isfinite(S).all():
            raise ValueError("Activities must be finite; they hold NaN or infinity.")
        return (S[:, :H] @ self.mixing_.T + self.mean_).astype(S.dtype)

    def estimate_log_partition(
        self,
        *,
        n_chains: int = 500,
        n_temperatures: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> LogPartition:
        """Estimate log Z with its standard error by annealed importance sampling; exact if Z is known.

        The result is stored in ``log_partition_``, so that :meth:`score_samples` is normalised from now on. More
        temperatures improve each chain's estimate; use more if the standard error is not well below one.

        Raises ValueError if exp(−E) has no finite integral, which can happen with heavy tails in overcomplete models.
        """
        check_is_fitted(self)
        _check_count("n_chains", n_chains, least=2)
        _check_count("n_temperatures", n_temperatures)
        if not self._energy.has_density(self._parameters):
            if lacking := self._lacks_for_integral():
                raise ValueError(lacking)
            chains, base = self._anneal(n_chains, n_temperatures, 0, check_random_state(random_state))
            if not np.isfinite(chains.log_weights).all():
                raise ValueError(
                    "Annealed importance sampling met energies that are not finite, so there is no estimate. Check "
                    "that the expert is finite everywhere."
                )
            self.log_partition_ = annealed.log_partition(chains, base)
        return self.log_partition_  # type: ignore[return-value]

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (n_samples, n_features) from the model, with their activities.

        If Z is known the rows are independent draws, else each is the end of a separate chain that followed a path of
        densities to the model. It warns if exp(−E) has no finite integral: the rows are then samples of no
        distribution.
        """
        check_is_fitted(self)
        _check_count("n_samples", n_samples)
        check_room(int(n_samples), sum(self.components_.shape), self.components_.dtype)
        random = check_random_state(random_state)
        if self._energy.has_density(self._parameters) and self._energy.expert.offers("draw"):
            with double_precision():
                Z = _draw(self._energy, self._parameters, key_from(random), int(n_samples))
        else:
            if lacking := self._lacks_for_integral():
                warnings.warn(lacking, UserWarning, stacklevel=2)
            Z = self._anneal(n_samples, SAMPLING_PATH, SAMPLING_STEPS, random)[0].positions
        X = (np.asarray(Z) @ self._whitening.inverse.T + self._whitening.mean).astype(self.components_.dtype)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return X, np.asarray(self.transform(X))

    # --------------------------------------------------------------------------------------------- persistence

    def _state(self) -> dict[str, Any]:
        return {
            "expert": self._energy.expert,
            "nonlinearity": self._energy.nonlinearity,
            "sampler": self._method.sampler,
            "n_steps": self._method.n_steps,
            "persistent": self._method.persistent,
            "course": jax.device_get(self._course),
            "whitening": self._whitening,
            "log_partition": self.log_partition_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        energy, course, whitening = Energy(state["expert"], state["nonlinearity"]), state["course"], state["whitening"]
        method = cd.Method(energy, state["sampler"], state["n_steps"], state["persistent"])
        kinds = {"expert": Expert, "sampler": Sampler, "course": cd.UpdateState, "whitening": WhiteningMap}
        for name, kind in kinds.items():
            if not isinstance(state[name], kind):
                raise TypeError(f"{name} must be a {kind.__name__}; got {type(state[name]).__name__}")
        with double_precision():
            self._keep(method, course, whitening)
            rows = whiten(jnp.zeros((1, self.n_features_in_)), *self._on_device(whitening, np.dtype(float)))
            jax.eval_shape(energy.value, course.parameters, rows)  # shapes that do not match raise an error
        if state["log_partition"] is not None:
            self.log_partition_ = state["log_partition"]

    # ------------------------------------------------------------------------------------------------- inside

    @property
    def _energy(self) -> Energy:
        return self._method.energy

    @property
    def _parameters(self) -> EnergyParameters:
        return self._course.parameters

    def _lacks_for_integral(self) -> str:
        """Return an explanation with remedies if there is no density, or an empty string if there is one."""
        lacking = self._energy.lacks_for_integral(self._parameters)
        if not lacking:
            return ""
        return (
            f"exp(−E) of this model has no finite integral, because {lacking}. There is no partition function and "
            "nothing to sample from. (1) Use fewer components; (2) use another init if filters are parallel; (3) keep "
            "tails lighter, with expert=Student(exponent=1.0, learn_exponents=False) or expert='logistic'."
        )

    def _anneal(
        self, n_chains: int, n_temperatures: int, n_more: int, random: np.random.RandomState
    ) -> tuple[annealed.Annealed, annealed.Base]:
        """Run chains from a known density to the model, within the memory budget; return them and that density."""
        memory = bytes_from(getattr(self._engine(), "memory_budget", "2GiB"))
        base = annealed.base_for(self._energy, self._parameters, self._whitening.variance)
        with double_precision():
            chains = annealed.follow_path(
                self._energy,
                self._parameters,
                base,
                int(n_chains),
                int(n_temperatures),
                n_more=n_more,
                key=key_from(random),
                memory=memory,
            )
        return chains, base

    def _keep(self, method: cd.Method, course: cd.UpdateState, whitening: WhiteningMap) -> None:
        """Store the learned state as NumPy arrays: JAX arrays would lose their double precision in a pickle."""
        for name, value in self._learned(method, jax.device_get(course), whitening).items():
            setattr(self, name, value)

    @staticmethod
    def _learned(method: cd.Method, course: cd.UpdateState, whitening: WhiteningMap) -> dict[str, Any]:
        filters = np.asarray(course.parameters.filters)
        dtype, precise = filters.dtype, filters.astype(float)
        log_partition = None
        if method.energy.has_density(course.parameters):
            # In double precision, whatever the data: it is a constant of all densities.
            in_double = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float), course.parameters)
            value = float(_log_partition(method.energy, in_double))
            log_partition = LogPartition(value, 0.0, 0, 0)
        exponents = course.parameters.shapes[0].get("exponents")
        return {
            "_method": method,
            "_course": course,
            "_whitening": whitening,
            "components_": (precise @ whitening.matrix).astype(dtype),
            "whitened_components_": filters.copy(),
            "mixing_": (whitening.inverse @ np.linalg.pinv(precise)).astype(dtype),
            "mean_": whitening.mean.astype(dtype),
            "exponents_": None if exponents is None else np.array(exponents),
            "expert_": clone(method.energy.expert),
            "sampler_": clone(method.sampler),
            "step_size_": float(course.step_size),
            "n_iter_": int(course.n_updates),
            "n_rejected_": int(course.n_rejected),
            "log_partition_": log_partition,
        }

    @staticmethod
    def _on_device(whitening: WhiteningMap, dtype: np.dtype) -> tuple[jax.Array, jax.Array]:
        mean, matrix = whitening.cast(dtype)
        return jnp.asarray(mean), jnp.asarray(matrix)

    def _in_blocks(self, data: Data) -> Data:
        """Arrange rows in blocks whose temporary arrays have the width of all units, in double precision."""
        return data.arranged(_nothing, 8 * (self._n_features_out + ARRAYS * data.n_features))

    def _by_rows(self, function: Any, X: ArrayLike, out: Any = None) -> Any:
        check_is_fitted(self)
        if out is not None:
            check_out(out)
        if is_distributed(X):
            return self._lazily(partial(self._by_rows, function), X, out=out)
        dtype = self.components_.dtype
        data = self._load(X, None, reset=False)
        data = data if data.dtype == dtype else data.transformed(partial(np.asarray, dtype=dtype))
        with double_precision():
            data = self._in_blocks(data)
            whitening = self._on_device(self._whitening, dtype)
            energy, parameters = self._energy, self._parameters

            def own(block: Block) -> Any:
                return function(energy, block, parameters, whitening)

            return data.collect(data.map(own)) if out is None else write_rows(out, data.n_rows, data.results(own))

    @property
    def _n_features_out(self) -> int:
        return int(len(self.components_) + sum(len(layer.bias) for layer in self._parameters.layers))


@compiled
def _activities(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    return jnp.concatenate(energy.activities(parameters, whiten(block.rows, *whitening)), axis=1)


@compiled
def _energies(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    return energy.value(parameters, whiten(block.rows, *whitening))


@partial(compiled, static=(0, 3))
def _draw(energy: Energy, parameters: EnergyParameters, key: jax.Array, n_samples: int) -> jax.Array:
    return energy.draw(key, parameters, n_samples)


@compiled
def _log_partition(energy: Energy, parameters: EnergyParameters) -> jax.Array:
    return energy.log_partition(parameters)


@jax.jit
def _nothing(rows: jax.Array) -> jax.Array:
    """Return zeros, since an energy needs no summary of its rows."""
    return jnp.zeros(len(rows), rows.dtype)


def _check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a value is a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
