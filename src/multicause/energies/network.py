"""Energy of a network whose hidden units are deterministic functions of the data, summed over all layers.

With one layer, E(z) = Σ_j E_j(w_jᵀz) (EBM01 eq. 1 and 3). Further layers (EBM01 fig. 8) receive the first one through a
nonlinearity f: h² = V f(h¹ − θ) + b, and add their own energies Σ_k E_k(h²_k), and so on.

With fewer units than dimensions the experts do not constrain the directions orthogonal to all filters, and exp(−E)
would have no finite integral. There the data are modelled as Gaussian (an undercomplete product of experts, Welling,
Zemel & Hinton 2003): the energy has the term β/2 ‖z_⊥‖², where z_⊥ is the part of z orthogonal to the filters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul, on_cpu
from multicause.energies.base import Expert, Shape
from multicause.energies.frame import Frame, frame_of, unseen
from multicause.energies.propriety import basis_of_least_weight, is_strong

# Nonlinearities between layers. "log_square" is a soft logarithm of the magnitude of a response: differences of it
# compare amplitudes, whatever the signs.
NONLINEARITIES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "log_square": lambda h: jnp.log1p(h**2),
}
# Largest number of units for which chains run in columns. With 10 units this takes half of the time; with 64, as long.
MOST_IN_COLUMNS = 32
# Scale of the initial weights between layers, in units of 1/√inputs.
FIRST_WEIGHTS = 0.5


class Layer(NamedTuple):
    """Weights from the units of one layer (I) to those of the next (O)."""

    weights: Array  # (O, I)
    thresholds: Array  # (I,) θ
    bias: Array  # (O,) b


class EnergyParameters(NamedTuple):
    """Learned parameters of an energy model; arrays only."""

    filters: Array  # (H, R), w_j in whitened space
    layers: tuple[Layer, ...]
    shapes: tuple[Shape, ...]  # shape parameters of the experts, one dict for each layer
    background: Array  # () β, precision of the Gaussian orthogonal to the filters


@dataclass(frozen=True)
class Energy:
    """Expert and nonlinearity of an energy; hashable, so that equal energies share compiled programs."""

    expert: Expert
    nonlinearity: str = "sigmoid"

    def initial(
        self, filters: Array, sizes: tuple[int, ...], background: float | Array, key: Array
    ) -> EnergyParameters:
        """Return initial parameters with the given filters and further layers of the given sizes."""
        dtype, inputs, layers = filters.dtype, len(filters), []
        for number, size in enumerate(sizes):
            first, second = jax.random.split(jax.random.fold_in(key, number))
            weights = jax.random.normal(first, (size, inputs), dtype) * FIRST_WEIGHTS / np.sqrt(inputs)
            thresholds = jax.random.normal(second, (inputs,), dtype) * FIRST_WEIGHTS
            layers.append(Layer(weights.astype(dtype), thresholds.astype(dtype), jnp.zeros(size, dtype)))
            inputs = size
        shapes = tuple(self.expert.initial(size, dtype) for size in (len(filters), *sizes))
        return self.constrain(EnergyParameters(filters, tuple(layers), shapes, jnp.asarray(background, dtype)))

    def constrain(self, parameters: EnergyParameters) -> EnergyParameters:
        """Return parameters with valid shapes of the experts."""
        units, dimensions = parameters.filters.shape
        first, *others = parameters.shapes
        shapes = [self.expert.constrain(first, proper=units <= dimensions)]
        shapes += [self.expert.constrain(shape, proper=False) for shape in others]
        return parameters._replace(shapes=tuple(shapes))

    def activities(self, parameters: EnergyParameters, Z: Array) -> tuple[Array, ...]:
        """Compute the hidden activities of all layers for whitened rows (n, R): (n, H), (n, H₂), …"""
        activity = matmul(Z, parameters.filters.T)
        activities, nonlinearity = [activity], NONLINEARITIES[self.nonlinearity]
        for layer in parameters.layers:
            activity = matmul(nonlinearity(activity - layer.thresholds), layer.weights.T) + layer.bias
            activities.append(activity)
        return tuple(activities)

    def frame(self, parameters: EnergyParameters) -> Frame | None:
        """Return the frame of the filters if some directions are orthogonal to all of them, else None."""
        return frame_of(parameters.filters) if has_background(parameters) else None

    def value(self, parameters: EnergyParameters, Z: Array, frame: Frame | None = None) -> Array:
        """Compute E(z) of whitened rows (n, R): (n,). The frame of the filters is computed if it is not given."""
        activities = self.activities(parameters, Z)
        total = jnp.zeros(len(Z), Z.dtype)
        for activity, shape in zip(activities, parameters.shapes, strict=True):
            # A double-precision constant in a user's expert must not change the precision of the whole computation.
            total = total + self.expert.energy(activity, shape).astype(Z.dtype).sum(axis=1)
        if has_background(parameters):
            rest = unseen(frame_of(parameters.filters) if frame is None else frame, parameters.filters, Z)
            total = total + parameters.background / 2 * (rest**2).sum(axis=1)
        return total

    def in_frame(self, parameters: EnergyParameters, frame: Frame | None, Z: Array) -> tuple[Array, Array]:
        """Compute E and ∂E/∂z of whitened rows given by their coordinates in the frame (n, R): (n,) and (n, R).

        In the frame, filters have only H coordinates and the other coordinates of a row are orthogonal to all filters,
        so that a chain takes about half of the time. Without a frame the coordinates are those of the whitened space.
        """

        def value(Z: Array) -> Array:
            if frame is None:
                return self.value(parameters, Z)
            units = len(parameters.filters)
            of_seen = self.value(parameters._replace(filters=frame.triangle.T), Z[:, :units])
            return of_seen + parameters.background / 2 * (Z[:, units:] ** 2).sum(axis=1)

        energies, back = jax.vjp(value, Z)
        return energies, back(jnp.ones_like(energies))[0]

    def gradient_of_columns(self, parameters: EnergyParameters, frame: Frame | None, Z: Array) -> Array:
        """Compute ∂E/∂z as :meth:`in_frame`, of rows that are columns of Z (R, n): (R, n).

        The model has one layer, and an expert whose energy is the same function of each activity.
        """
        units = len(parameters.filters)
        filters, seen = (parameters.filters, Z) if frame is None else (frame.triangle.T, Z[:units])

        def total(seen: Array) -> Array:
            return self.expert.energy(matmul(filters, seen), {}).astype(Z.dtype).sum()

        gradient = jax.grad(total)(seen)
        return gradient if frame is None else jnp.concatenate([gradient, parameters.background * Z[units:]])

    # ------------------------------------------------------------------------ models with a known partition function

    def has_density(self, parameters: EnergyParameters) -> bool:
        """Return whether log ∫ exp(−E) is known.

        This needs one layer, no more units than dimensions, and an expert with ``log_partition``.
        """
        return not self.why_no_density(parameters)

    def why_no_density(self, parameters: EnergyParameters) -> str:
        """Return why the partition function is not known exactly, or an empty string if it is."""
        units, dimensions = parameters.filters.shape
        if parameters.layers:
            return "the model has several layers"
        if units > dimensions:
            return f"the model is overcomplete ({units} components in {dimensions} dimensions)"
        if not self.expert.offers("log_partition"):
            return f"the expert {type(self.expert).__name__} has no log_partition"
        return ""

    def log_partition(self, parameters: EnergyParameters) -> Array:
        """Compute log ∫ exp(−E(z)) dz where :meth:`has_density`: EBM01 eq. 5, for any expert and background."""
        W, beta = parameters.filters, parameters.background
        units, dimensions = W.shape
        of_units = self.expert.log_partition(parameters.shapes[0], units, W.dtype).sum()
        if units == dimensions:
            return of_units - jnp.linalg.slogdet(W)[1]
        return (
            of_units
            - jnp.linalg.slogdet(matmul(W, W.T))[1] / 2
            + (dimensions - units) / 2 * (jnp.log(2 * jnp.pi) - jnp.log(beta))
        )

    def why_no_integral(self, parameters: EnergyParameters) -> str:
        """Return why exp(−E) has no finite integral; an empty string if it has one, or if it is unknown.

        Energies of further layers do not matter: they are bounded, or grow more slowly than the logarithm of a power.
        """
        filters, shape = np.asarray(parameters.filters), parameters.shapes[0]
        units, dimensions = filters.shape
        precision = float(np.finfo(filters.dtype).eps)
        filters = filters.astype(float)
        rank = len(basis_of_least_weight(filters, np.zeros(units), precision))
        if rank < min(units, dimensions):
            return f"the filters span only {rank} of {dimensions} dimensions"
        exponents = self.expert.tail_exponents(shape)
        # With at most as many units as dimensions, constraints keep every expert proper, and the other directions are
        # Gaussian.
        if units <= dimensions or exponents is None or is_strong(filters, np.asarray(exponents), precision):
            return ""
        return (
            "it falls too slowly in some directions: for the directions of every subspace, twice the sum of the "
            "exponents of all filters that do not vanish on it must exceed its dimension"
        )

    def draw(self, key: Array, parameters: EnergyParameters, n_samples: int) -> Array:
        """Draw independent rows (n, R) from the model; needs :meth:`has_density` and an expert with ``draw``."""
        W, beta = parameters.filters, parameters.background
        units, dimensions = W.shape
        first, second = jax.random.split(key)
        activity = self.expert.draw(first, parameters.shapes[0], n_samples, units, W.dtype).astype(W.dtype)
        if units == dimensions:
            return jnp.linalg.solve(W, activity.T).T
        # The smallest z with W z = h, plus Gaussian noise without its part in the span of the filters.
        noise = jax.random.normal(second, (n_samples, dimensions), W.dtype) / jnp.sqrt(beta)
        return noise + matmul(activity - matmul(noise, W.T), jnp.linalg.pinv(W).T)


@dataclass(frozen=True, eq=False)  # hashed by identity: parameters may be traced
class EnergyTarget:
    """Energy of a model with given parameters, for chains at coordinates in a frame."""

    energy: Energy
    parameters: EnergyParameters
    frame: Frame | None

    def __call__(self, Z: Array) -> tuple[Array, Array]:
        """Compute E and ∂E/∂z of rows (n, R): (n,) and (n, R)."""
        return self.energy.in_frame(self.parameters, self.frame, Z)

    @property
    def gradient_of_columns(self) -> Callable[[Array], Array] | None:
        """Return the function that computes ∂E/∂z of columns (R, n): (R, n); None if it would not be faster.

        On a CPU, products with few units take a quarter of the time in columns, whose fastest axis is long.
        """
        few = len(self.parameters.filters) <= MOST_IN_COLUMNS
        if few and on_cpu() and self.energy.expert.elementwise and not self.parameters.layers:
            return partial(self.energy.gradient_of_columns, self.parameters, self.frame)
        return None


def has_decay(parameters: EnergyParameters) -> EnergyParameters:
    """Return which parameters weight decay applies to: filters and weights."""
    nothing = jax.tree.map(lambda leaf: False, parameters)
    return nothing._replace(filters=True, layers=tuple(layer._replace(weights=True) for layer in nothing.layers))


def has_background(parameters: EnergyParameters) -> bool:
    """Return whether some directions are orthogonal to all filters."""
    units, dimensions = parameters.filters.shape[-2:]
    return units < dimensions
