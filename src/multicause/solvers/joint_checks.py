"""Test of a user's log joint on some rows, before learning begins."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.solvers.joint_model import LogJoint

# Number of rows on which a function is tested.
ROWS_TO_TEST = 8


def rows_to_test(X: np.ndarray) -> np.ndarray:
    """Return some rows, half of them with missing values if there are such rows."""
    missing = np.isnan(X).any(axis=1)
    incomplete = np.flatnonzero(missing)[: ROWS_TO_TEST // 2]
    complete = np.flatnonzero(~missing)[: ROWS_TO_TEST - len(incomplete)]
    return X[np.concatenate([complete, incomplete])]


def check_initial(parameters: Any) -> None:
    """Raise ValueError unless a user's initial parameters are arrays of finite real numbers."""
    what = "initialize must return initial parameters, a dict of arrays of finite numbers"
    leaves, _ = jax.tree_util.tree_flatten_with_path(parameters)
    if not leaves:
        raise ValueError(f"{what}; got {parameters!r}. Return a dict such as {{'components': array}}.")
    for path, leaf in leaves:
        values, name = np.asarray(leaf), jax.tree_util.keystr(path)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{what}; parameters{name} is {leaf!r}. Use real numbers.")
        n_bad = int(np.sum(~np.isfinite(values)))
        if n_bad:
            raise ValueError(
                f"{what}; {n_bad} of {values.size} values of parameters{name} are NaN or infinite. If X has missing "
                "values, leave them out, as np.nanmean and np.nanstd do."
            )


def check_log_joint(log_joint: LogJoint, parameters: Any, rows: np.ndarray, n_components: int) -> None:
    """Raise ValueError if a user's function fails on some rows, is not pure, or returns another shape or NaN."""
    n, S = len(rows), 6
    some = np.random.RandomState(0).uniform(size=(n, S, n_components)) < 0.5
    # A search begins with no active cause and with single ones.
    some[:, 3], some[:, 4], some[:, 5] = False, np.arange(n_components) == 0, True
    states = jnp.asarray(some, rows.dtype)
    arguments = (parameters, states, jnp.asarray(rows))
    what = (
        "log_joint must take parameters, states (n, S, H) and rows (n, D), and return log p(s, y) of every state "
        "and row, an array (n, S)"
    )
    try:
        first, again = (np.asarray(log_joint(*arguments)) for _ in range(2))
    except Exception as error:
        raise ValueError(f"{what}; it failed with {type(error).__name__}: {error}.") from error
    if first.shape != (n, S):
        raise ValueError(f"{what}, here {(n, S)}; got {first.shape}. Sum over features and causes alone.")
    if first.dtype.kind != "f":
        raise ValueError(f"{what} of real numbers; got {first.dtype}. Return floating-point numbers.")
    gaps = np.isnan(rows).any(axis=1)
    if np.isnan(first[gaps]).any() and not np.isnan(first[~gaps]).any():
        raise ValueError(
            f"{what}; it returned NaN for rows with missing values, which are NaN. Leave them out in the function, as "
            "by errors = jnp.where(jnp.isnan(rows), 0, rows)[:, None] - means, and jnp.where(jnp.isnan(rows)[:, None], "
            "0, errors), or fill them in before."
        )
    n_bad = int(np.sum(np.isnan(first) | np.isposinf(first)))
    if n_bad:
        raise ValueError(f"{what}, without NaN and +∞; {n_bad} of {first.size} values were NaN or +∞.")
    if not np.array_equal(first, again):
        raise ValueError(
            f"{what}, the same whenever it is called with the same arguments; two calls differed. Draw no random "
            "numbers in it, and change nothing outside of it."
        )
    try:
        value, gradient = _sum_and_gradient(log_joint, *arguments)
        alone = np.asarray(_values(log_joint, parameters, states[:1, :1], rows[:1]))
    except Exception as error:
        raise ValueError(
            f"{what}, and be written with jax.numpy, so that it can be compiled and differentiated; that failed with "
            f"{type(error).__name__}: {str(error).splitlines()[0]}"
        ) from error
    # Sums of all values differ by rounding errors only, unless the function depends on what it computed before.
    if not np.isclose(float(value), first.sum(), rtol=1e-3):
        raise ValueError(
            f"{what}, the same when it is compiled; the compiled function differed. It must depend on nothing but its "
            "arguments."
        )
    if not np.allclose(alone, first[:1, :1], rtol=1e-3):
        raise ValueError(f"{what}, for each state and row on its own; it changed with the other rows and states.")
    bad = [leaf for leaf in jax.tree.leaves(gradient) if not np.isfinite(np.asarray(leaf)).all()]
    if bad and np.isfinite(first).all():
        raise ValueError(
            f"{what}, whose gradient is finite; derivatives with respect to {len(bad)} of the arrays have NaN or "
            "infinity. Bound arguments of logarithms and square roots away from zero."
        )


@partial(jax.jit, static_argnums=0)
def _values(log_joint: LogJoint, parameters: Any, states: Array, rows: Array) -> Array:
    """Evaluate a log joint in one program, which later fits of the same function share."""
    return log_joint(parameters, states, rows)


@partial(jax.jit, static_argnums=0)
def _sum_and_gradient(log_joint: LogJoint, parameters: Any, states: Array, rows: Array) -> tuple[Array, Any]:
    """Return the sum of a log joint over all states and rows, and its gradient with respect to the parameters."""
    return jax.value_and_grad(lambda given: jnp.sum(log_joint(given, states, rows)))(parameters)
