"""Checks of a user's expert before it is used: shapes, finite values, independent elements and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, double_precision
from multicause.energies.base import Expert, Shape

# Activities at which an expert is evaluated. None is zero or a whole number, where a kink is likely and harmless.
LARGEST = 5.3
PLACES = 24
# Step of the central differences in double precision, and tolerance of their difference from the derivative, relative
# to the largest one. Truncation and rounding errors are below 1e-8.
STEP = 1e-5
TOLERANCE = 1e-4
# Quadrature of exp(−E): range and number of nodes in t = asinh h, and tolerance of the logarithm.
REACH, NODES = 250.0, 10_001
INTEGRAL_TOLERANCE = 0.01


def check_expert(expert: Expert) -> None:
    """Raise ValueError with an explanation if an expert's energy is invalid."""
    name = _name(expert)
    with double_precision():
        activity = jnp.asarray(np.linspace(-LARGEST, LARGEST, PLACES).reshape(-1, 2))
        shape = _shape(expert, name, activity.dtype)

        def energy(values: jax.Array) -> jax.Array:
            return expert.energy(values, shape)

        try:
            value = energy(activity)
        except Exception as error:
            raise ValueError(
                f"{name} failed on activities of shape {activity.shape}: {error}. It must take a JAX array of "
                "activities and return the energy of each, with functions of jax.numpy."
            ) from error
        found = getattr(value, "shape", None)
        if found != activity.shape:
            raise ValueError(
                f"{name} must return one energy per activity, an array of shape {activity.shape}; got "
                f"{type(value).__name__ if found is None else found}. Do not sum over units: the model does."
            )
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"{name} must return real floating-point energies; got dtype {value.dtype}.")
        if not np.isfinite(value).all():
            bad = ~np.isfinite(value)
            place, there = float(activity[bad][0]), float(value[bad][0])
            raise ValueError(f"{name} must be finite for every activity; at {place:.3g} it is {there}.")
        _check_independence(energy, activity, value, name)
        slopes = np.asarray(jax.grad(lambda values: energy(values).sum())(activity))
        # The check runs in double precision. A function that rounds to single precision inside cannot be checked with
        # such a small step, and gets a larger one.
        step = STEP if value.dtype == jnp.float64 else 1e-2
        _compare(slopes, (energy(activity + step) - energy(activity - step)) / (2 * step), step, activity, name)
        _check_learned_shape(expert, shape, activity, step, name)
        _check_optional(expert, shape, activity.dtype, name)


def _shape(expert: Expert, name: str, dtype: Any) -> Shape:
    """Return the initial shape of two units, which must be a dict of arrays with one number for each unit."""
    shape = expert.initial(2, dtype)
    if not isinstance(shape, dict) or any(getattr(array, "shape", None) != (2,) for array in shape.values()):
        raise ValueError(
            f"{name} must give a shape that is a dict of arrays with one number per unit; initial(2, dtype) returned "
            f"{shape!r}."
        )
    return shape


def _check_independence(energy: Callable[[Array], Array], activity: Array, value: Array, name: str) -> None:
    """Raise ValueError if an energy depends on other rows or on the activities of other units."""
    rows = np.concatenate([energy(activity[i : i + 1]) for i in range(3)])
    units = np.concatenate([energy(activity.at[:, 1 - j].add(0.7))[:, j : j + 1] for j in range(2)], axis=1)
    for found, expected, others in ((rows, value[:3], "rows"), (units, value, "units")):
        if not np.allclose(found, expected, rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"{name} must treat each activity on its own; its energies change with the activities of other "
                f"{others}. Do not normalize or sum over {others}."
            )


def _compare(slopes: Any, differences: Any, step: float, places: Any, name: str) -> None:
    """Raise ValueError if derivatives and finite differences disagree."""
    slopes, differences = np.asarray(slopes), np.asarray(differences)
    scale = max(1.0, float(np.abs(differences).max()))
    wrong = ~(np.abs(slopes - differences) <= scale * max(TOLERANCE, step))
    if wrong.any():
        i = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"The derivative of {name} at {float(places[i]):.3g} is {slopes[i]:.6g} by automatic differentiation "
            f"and {differences[i]:.6g} by finite differences. Use differentiable functions of jax.numpy, without "
            "stop_gradient or rounding, and check your custom rules (custom_jvp, custom_vjp)."
        )


def _check_learned_shape(expert: Expert, shape: Shape, activity: Array, step: float, name: str) -> None:
    """Check the derivatives with respect to the learned shape.

    A derivative that is zero everywhere belongs to a number that is not learned.
    """
    slopes = jax.grad(lambda shape: expert.energy(activity, shape).sum())(shape)
    for part, values in shape.items():
        if not np.asarray(slopes[part]).any():
            continue

        def total(values: Array, part: str = part) -> Array:
            return expert.energy(activity, shape | {part: values}).sum()

        moves = step * jnp.eye(2, dtype=values.dtype)
        differences = jnp.stack([(total(values + move) - total(values - move)) / (2 * step) for move in moves])
        _compare(slopes[part], differences, step, values, f"{name} in {part!r}")


def _check_optional(expert: Expert, shape: Shape, dtype: Any, name: str) -> None:
    """Raise ValueError if ``log_partition`` or ``draw``, where implemented, return wrong shapes or values."""
    results: dict[str, tuple[Any, tuple[int, ...]]] = {}
    if expert.offers("log_partition"):
        results["log_partition"] = (expert.log_partition(shape, 2, dtype), (2,))
    if expert.offers("draw"):
        results["draw"] = (expert.draw(jax.random.key(0), shape, 3, 2, dtype), (3, 2))
    for method, (values, expected) in results.items():
        if np.shape(values) != expected or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must return finite numbers of shape {expected} from {method}, for two units"
                f"{' and three samples' if method == 'draw' else ''}; got {np.asarray(values)!r}."
            )
    if "log_partition" in results:
        claimed, integral = float(results["log_partition"][0][0]), _log_integral(expert, shape)
        if not abs(claimed - integral) < INTEGRAL_TOLERANCE:
            raise ValueError(
                f"{name} returns {claimed:.6g} for log ∫ exp(−E(h)) dh, but quadrature gives {integral:.6g}. Fix "
                "log_partition, or remove it: the density is then not normalized."
            )


def _log_integral(expert: Expert, shape: Shape) -> float:
    """Compute log ∫ exp(−E) of the first unit by quadrature over t with h = sinh t.

    In t, heavy tails fall exponentially.
    """
    t = jnp.linspace(-REACH, REACH, NODES)
    places = jnp.sinh(t)
    energies = expert.energy(jnp.stack([places, places], axis=1), shape)[:, 0]
    log_terms = jnp.abs(t) + jnp.log1p(jnp.exp(-2 * jnp.abs(t))) - jnp.log(2.0) - energies
    # Far outside, energies may be infinite or, as differences of infinities, NaN; the density is zero there.
    terms = jnp.exp(jnp.where(jnp.isfinite(energies), log_terms, -jnp.inf))
    return float(jnp.log(terms.sum() * (t[1] - t[0])))


def _name(expert: Expert) -> str:
    """Return the name of an expert for messages."""
    function = getattr(expert, "function", None)
    return f"The expert {getattr(function, '__name__', type(expert).__name__)!r}"
