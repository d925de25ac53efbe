"""An expert is tried before it is used: shape, finiteness, independence of its elements, and its derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import double_precision
from multicause.energies.base import Expert

# Activities at which an expert is tried. None is zero or a whole number, where a kink is likely and harmless.
LARGEST = 5.3
PLACES = 24
# Step of the central differences in double precision, and how far they may be from the derivative, of the size of the
# largest one: truncation and rounding are below 1e-8.
STEP = 1e-5
TOLERANCE = 1e-4


def check_expert(expert: Expert) -> None:
    """Raise an error that says what is wrong with an expert's energy, if anything is."""
    name = _name(expert)
    with double_precision():
        activity = jnp.asarray(np.linspace(-LARGEST, LARGEST, PLACES).reshape(-1, 2))
        shape = expert.initial(2, activity.dtype)

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
        alone = np.array([[float(energy(activity[i : i + 1])[0, j]) for j in range(2)] for i in range(3)])
        if not np.allclose(alone, value[:3], rtol=1e-6, atol=1e-9):
            raise ValueError(
                f"{name} must treat each activity on its own; its energies change when other rows are left out. "
                "Do not normalise or sum over rows."
            )
        slopes = np.asarray(jax.grad(lambda values: energy(values).sum())(activity))
        # In double precision whatever the function does inside: a function that rounds to single cannot be checked
        # with a step this small, and gets a larger one.
        step = STEP if value.dtype == jnp.float64 else 1e-2
        differences = np.asarray((energy(activity + step) - energy(activity - step)) / (2 * step))
        scale = max(1.0, float(np.abs(differences).max()))
        wrong = ~(np.abs(slopes - differences) <= scale * max(TOLERANCE, step))
        if wrong.any():
            i = tuple(np.argwhere(wrong)[0])
            raise ValueError(
                f"The derivative of {name} at {float(activity[i]):.3g} is {slopes[i]:.6g} by automatic differentiation "
                f"and {differences[i]:.6g} by finite differences. Use differentiable functions of jax.numpy, without "
                "stop_gradient or rounding, and check rules of your own (custom_jvp, custom_vjp)."
            )


def _name(expert: Expert) -> str:
    function = getattr(expert, "function", None)
    return f"The expert {getattr(function, '__name__', type(expert).__name__)!r}"
