"""Optimizers of gradient learning: parts that wrap optax, so that they can be cloned, searched and saved.

optax is imported when an optimizer is used: importing it takes a tenth of a second.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.parts import Part

if TYPE_CHECKING:
    import optax

#: Arrays of an optimizer's state, such as velocities.
OptimizerState = tuple[Array, ...]
#: How the learning rate falls from its first to its last value.
SCHEDULES = ("linear", "cosine", "constant")
#: Ratio of the final to the initial learning rate, unless it is given (EBM01 §4 and §5: from 0.05 to 0.0005).
FINAL_RATE_RATIO = 0.01


class Optimizer(Part):
    """Base class of optimizers. A user-defined subclass returns any gradient transformation of optax."""

    @abstractmethod
    def transformation(self, learning_rate: Array) -> optax.GradientTransformation:
        """Return the transformation from gradients to changes of the parameters, at a learning rate ().

        It is called inside a compiled program, once for each update. The learning rate follows the schedule of the
        model, so that no schedule is needed here.
        """


class Momentum(Optimizer):
    """Gradient descent with momentum: v ← momentum · v − η g, θ ← θ + v, as in EBM01 §4.

    Velocities keep the learning rates at which they were gained, unlike those of ``optax.sgd``.

    Parameters
    ----------
    momentum : float, default=0.9
        Fraction of its velocity that a parameter keeps from one update to the next.
    nesterov : bool, default=False
        Whether to use Nesterov's accelerated gradient.
    """

    def __init__(self, momentum: float = 0.9, *, nesterov: bool = False) -> None:
        self.momentum = momentum
        self.nesterov = nesterov

    def validate(self) -> None:
        """Raise ValueError if the momentum is not in [0, 1)."""
        if not isinstance(self.momentum, Real) or not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1; got {self.momentum!r}.")

    def transformation(self, learning_rate: Array) -> optax.GradientTransformation:
        """Return the scaled gradient, accumulated with momentum."""
        import optax

        return optax.chain(
            optax.scale_by_learning_rate(learning_rate), optax.trace(self.momentum, nesterov=bool(self.nesterov))
        )


class Optax(Optimizer):
    """Optimizer of optax by its name, such as ``Optax("rmsprop", {"decay": 0.95})``.

    Parameters
    ----------
    name : str, default="adam"
        Name of a function of optax that takes a ``learning_rate``.
    settings : dict, optional
        Its other arguments, numbers or text.
    """

    def __init__(self, name: str = "adam", settings: dict[str, Any] | None = None) -> None:
        self.name = name
        self.settings = settings

    def validate(self) -> None:
        """Raise ValueError if optax has no such optimizer, or if it does not take these settings."""
        import optax

        factory = getattr(optax, self.name, None) if isinstance(self.name, str) else None
        if not callable(factory) or "learning_rate" not in signature(factory).parameters:
            raise ValueError(
                f"name of Optax must be that of an optimizer of optax with a learning rate, such as 'adam', 'rmsprop' "
                f"or 'sgd'; got {self.name!r}."
            )
        try:
            parameters = {"weights": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
            jax.eval_shape(self._try, parameters)
        except Exception as error:  # whatever a function of optax raises for its arguments
            raise ValueError(
                f"optax.{self.name} with the settings {self.settings!r} cannot be used here: {error}. It must need "
                "nothing but gradients and parameters."
            ) from error

    def transformation(self, learning_rate: Array) -> optax.GradientTransformation:
        """Return the transformation of optax."""
        import optax

        return getattr(optax, self.name)(learning_rate=learning_rate, **(self.settings or {}))

    def _try(self, parameters: Any) -> Any:
        """Make one step, of which only shapes are computed."""
        optimizer = self.transformation(jnp.asarray(0.1))
        return optimizer.update(parameters, optimizer.init(parameters), parameters)

    def _identity(self) -> tuple[Any, ...]:
        return type(self), self.name, *sorted((self.settings or {}).items())


NAMES: dict[str, type] = {"momentum": Momentum, "adam": Optax}


@partial(jax.jit, static_argnums=0)
def first_optimizer_state(optimizer: Optimizer, parameters: Any) -> OptimizerState:
    """Return the arrays of an optimizer's state before its first step."""
    return tuple(jax.tree.leaves(optimizer.transformation(jnp.ones(())).init(parameters)))


def stepped(
    optimizer: Optimizer, learning_rate: Array, parameters: Any, optimizer_state: OptimizerState, gradient: Any
) -> tuple[Any, OptimizerState]:
    """Return parameters and arrays of the optimizer's state after a step against the gradient."""
    import optax

    transformation = optimizer.transformation(learning_rate)
    structure = jax.tree.structure(jax.eval_shape(transformation.init, parameters))
    changes, state = transformation.update(gradient, jax.tree.unflatten(structure, optimizer_state), parameters)
    kept = (leaf.astype(old.dtype) for leaf, old in zip(jax.tree.leaves(state), optimizer_state, strict=True))
    return optax.apply_updates(parameters, changes), tuple(kept)


@partial(jax.jit, static_argnums=0)
def learning_rate_at(schedule: str, first: Array, last: Array, progress: Array) -> Array:
    """Return the learning rate of a schedule; ``progress`` is 0 at the first update and 1 at the last.

    A geometric decay is not offered, because it would leave most updates to small rates: weak components are then still
    far from their place when the rate has become too small to move them.
    """
    import optax

    if schedule == "constant":
        return optax.constant_schedule(first)(progress)
    if schedule == "cosine":
        return optax.cosine_decay_schedule(first, 1, alpha=last / first)(progress)
    return optax.linear_schedule(first, last, 1)(progress)
