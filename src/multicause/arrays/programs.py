"""Compilation of functions that are called from Python."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import jax

# Programs run in parallel in our own threads (see :mod:`multicause.runtime.parallel`). Threads that XLA would start for
# each of them, or for operations that do not depend on each other, would compete with these for the same cores.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False, "xla_cpu_enable_concurrency_optimized_scheduler": False}


def compiled(function: Callable[..., Any], static: tuple[int, ...] = (0,)) -> Any:
    """Compile a function that is called from Python, not from another program, to run in one thread of a CPU.

    The arguments at the positions ``static``, such as a ``model``, are hashable: equal ones share one program.
    """
    return Compiled(function, static)


class Compiled:
    """Compiled function of a module. It is pickled by name, so that other processes compile it once."""

    def __init__(self, function: Callable[..., Any], static: tuple[int, ...]) -> None:
        update_wrapper(self, function)
        self._program = jax.jit(function, static_argnums=static, compiler_options=ONE_THREAD)

    def __call__(self, *arguments: Any) -> Any:
        """Run the program, which is compiled first if it does not exist for these shapes yet."""
        return self._program(*arguments)

    def eval_shape(self, *arguments: Any) -> Any:
        """Return shapes and dtypes of the results."""
        return self._program.eval_shape(*arguments)

    def lower(self, *arguments: Any) -> Any:
        """Return the program for these arguments before it is compiled."""
        return self._program.lower(*arguments)

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])


def jit_by_parts(function: Callable[..., Any]) -> Any:
    """Compile a function whose first argument, ``model``, is a record of parts, once for equal parts and shapes."""
    return compiled(function)
