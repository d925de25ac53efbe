"""Configuration of JAX: precision of numbers and of matrix products, and memory sizes. No other file configures JAX."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import update_wrapper
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array
# Number of starts that an accelerator computes at the same time; each needs its own memory.
STARTS_ON_DEVICE = 4


def double_precision() -> AbstractContextManager[Any]:
    """Enable 64-bit numbers inside a ``with`` block, whatever the user's own JAX settings are.

    Arrays keep the dtype of the data; the switch only allows sums such as the bound to be accumulated in
    double precision while the arrays are in single precision.
    """
    return jax.enable_x64(True)


def matmul(a: Array, b: Array) -> Array:
    """Compute the matrix product in the full precision of its operands.

    GPUs would otherwise round single-precision operands to 10 bits (TF32), which changed log-likelihoods by 4e-5.
    """
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def sum_in_double(values: Array, axis: int | None = None) -> Array:
    """Sum in double precision: near convergence a bound summed in single precision stops changing."""
    return jnp.sum(values, axis=axis, dtype=jnp.float64)


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


def over_starts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a function to every start, within one program.

    On a CPU starts run one after the other, because their arrays then stay in the cache (for 8 starts of 500 × 1024
    states in double precision, 2.0 instead of 6.4 ms a start); on other devices several run at once.
    """
    batch = starts_at_once(STARTS_ON_DEVICE)
    return lambda *arguments: jax.lax.map(
        lambda one: function(*one), arguments, batch_size=None if batch == 1 else batch
    )


def over_active(function: Callable[..., Any], active: Array, *arguments: Any) -> Any:
    """Apply a function to the active starts (starts,), within one program; results of the others are zero.

    The running time is proportional to the number of active starts, so that one program serves one start and many. See
    :func:`over_starts` for how many run at once.
    """
    n_starts = len(active)
    if n_starts == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*_pick(arguments, 0)))
    batch = starts_at_once(n_starts)
    # Active starts come first; entries beyond them hold an index that no start has, and are neither read nor written.
    rank, numbers = jnp.cumsum(active) - 1, jnp.arange(n_starts + batch)
    count = rank[-1] + 1
    has_rank = active & (rank == numbers[:, None])
    places = jnp.min(jnp.where(has_rank, numbers[:n_starts], n_starts), axis=1)
    shapes = jax.eval_shape(lambda arguments: function(*_pick(arguments, 0)), arguments)
    nothing = jax.tree.map(lambda leaf: jnp.zeros((n_starts, *leaf.shape), leaf.dtype), shapes)

    def step(number: Array, results: Any) -> Any:
        if batch == 1:
            own = places[number]
            found = function(*_pick(arguments, own))
        else:
            own = jax.lax.dynamic_slice(places, (number * batch,), (batch,))
            found = jax.vmap(function)(*_pick(arguments, jnp.minimum(own, n_starts - 1)))
        return jax.tree.map(lambda all_of, new: all_of.at[own].set(new, mode="drop"), results, found)

    return jax.lax.fori_loop(0, -(-count // batch), step, nothing)


def _pick(arguments: Any, which: Any) -> Any:
    """Select an entry of the first axis of all arrays."""
    return jax.tree.map(lambda leaf: leaf[which], arguments)


def select(which: Array, new: Any, old: Any) -> Any:
    """Return the new records where ``which`` (starts,) is true, and the old ones elsewhere."""
    return jax.tree.map(
        lambda a, b: jnp.where(jnp.reshape(which, which.shape + (1,) * (jnp.ndim(a) - 1)), a, b), new, old
    )


def largest_with_share(
    values: Array, weights: Array, share: Array, total: Callable[[Array], Array] = lambda own: own
) -> Array:
    """Return the weighted upper quantile: the largest value such that values of at least it have this share of weight.

    With equal weights this is the k-th largest of N values, k = ⌈share · N⌉. The value is found from its highest bits
    to its lowest, which takes sums over all values and no sorting: on a CPU bit by bit, on an accelerator, where
    starting a sum takes longer than computing it, four bits at a time. If values are distributed over devices,
    ``total`` sums a number over all of them.
    """
    signed, unsigned = (jnp.int32, jnp.uint32) if values.dtype == jnp.float32 else (jnp.int64, jnp.uint64)
    n_bits = jnp.iinfo(unsigned).bits
    top = jnp.asarray(1, unsigned) << (n_bits - 1)
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    # Keys have the order of the values: the bits of negative numbers are inverted, so that they lie below the others.
    keys = jnp.where(jax.lax.bitcast_convert_type(values, signed) < 0, ~bits, bits | top)
    # Products such as 0.9 · 10 may end just above a whole number.
    target = share * total(sum_in_double(weights)) * (1 - 4 * np.finfo(float).eps)

    at_once = 1 if one_by_one() else 4
    digits = jnp.arange(1, 2**at_once, dtype=unsigned)

    def add_digit(number: Array, found: Array) -> Array:
        more = found | (digits << (n_bits - at_once * (number + 1)).astype(unsigned))
        reached = [total(sum_in_double(jnp.where(keys >= one, weights, 0))) >= target for one in more]
        # The larger the digit, the smaller the weight that reaches it.
        return jnp.max(jnp.where(jnp.stack(reached), more, found))

    found = jax.lax.fori_loop(0, n_bits // at_once, add_digit, jnp.zeros((), unsigned))
    found = jnp.where(found >= top, found & ~top, ~found)
    return jax.lax.bitcast_convert_type(found, values.dtype)


# Number of squarings in :func:`largest_eigenvalue`.
SQUARINGS = 8


def largest_eigenvalue(matrix: Array) -> Array:
    """Return a tight upper bound of the largest eigenvalue of a positive semidefinite matrix (H, H).

    λ ≤ (tr Aᵏ)^(1/k) ≤ H^(1/k) λ, here with k = 256: exact to rounding unless the next eigenvalue is nearly as large,
    and at most 2 % too large for H = 100. It takes a few matrix products; LAPACK would start threads, which in a loop
    over small batches took ten times as long as all other work.
    """

    def normalized(matrix: Array) -> tuple[Array, Array]:
        trace = jnp.trace(matrix)
        # A matrix of zeros stays unchanged.
        divisor = jnp.where(trace > 0, trace, 1)
        return matrix / divisor, divisor

    def square(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, logarithm = state
        matrix, divisor = normalized(matmul(matrix, matrix))
        return matrix, logarithm + jnp.log(divisor) / 2.0 ** (number + 1)

    first, divisor = normalized(matrix)
    _, logarithm = jax.lax.fori_loop(0, SQUARINGS, square, (first, jnp.log(divisor)))
    return jnp.where(jnp.trace(matrix) > 0, jnp.exp(logarithm), 0)


def fastest_block() -> int | None:
    """Return the size in bytes of a block's temporary arrays at which it runs fastest, or None for no limit.

    On a CPU they should fit into its cache: 50000 rows of 1024 states take 88 ms in blocks of 2000 rows and 652 ms in
    one block (single precision; 176 and 1097 ms in double precision, in blocks of 1000 rows).
    """
    return 24 * 2**20 if jax.default_backend() == "cpu" else None


def on_cpu() -> bool:
    """Return whether computations run on a CPU by default."""
    return jax.default_backend() == "cpu"


def one_by_one() -> bool:
    """Return whether it is faster to loop over features, each a vector over rows, than to compute all at once.

    This holds on a CPU, whose cache is small and whose arithmetic is vectorized. Accelerators prefer one large program.
    """
    return jax.default_backend() == "cpu"


def sum_over_features(function: Callable[..., Array], zero: Array, *arrays: Any) -> Array:
    """Compute Σ_d ``function(array_d, ...)`` over the first axis of arrays or trees; ``zero`` has a term's shape."""
    if one_by_one():
        return jax.lax.scan(lambda total, one: (total + function(*one), None), zero, arrays)[0]
    return jnp.sum(jax.vmap(function)(*arrays), axis=0)


def indices_of_largest(scores: Array, k: int) -> Array:
    """Return the indices (k, n) of the k largest entries of each column of (H, n), best first.

    The lower index wins a tie. Ranks need no double precision: ``top_k`` takes twenty times as long in it. On an
    accelerator, each pass finds the largest key below the last one, where a key is a score and, in its lower half, an
    index; this is faster than the sorting of ``top_k``.
    """
    scores = _in_single_precision(scores)
    if one_by_one():
        return jax.lax.top_k(scores.T, k)[1].T
    n = len(scores)
    bits = jax.lax.bitcast_convert_type(scores, jnp.int32)
    ordered = jnp.where(bits < 0, bits ^ jnp.int32(0x7FFFFFFF), bits).astype(jnp.int64)
    keys = (ordered << 32) | jnp.arange(n - 1, -1, -1, dtype=jnp.int64)[:, None]
    least, found = jnp.iinfo(jnp.int64).min, []
    last = jnp.full(scores.shape[1], jnp.iinfo(jnp.int64).max)
    for _ in range(k):
        last = jnp.max(jnp.where(keys < last, keys, least), axis=0)
        found.append((n - 1 - (last & 0xFFFFFFFF)).astype(jnp.int32))
    return jnp.stack(found)


def _in_single_precision(scores: Array) -> Array:
    """Scale scores (H, n) to the range of single precision, keeping the order within each column.

    Each column becomes its distance from its largest score, as a fraction of the largest distance: scores near the
    largest, where ranks matter, keep most digits.
    """
    if scores.dtype == jnp.float32:
        return scores
    largest = jnp.max(scores, axis=0)
    below = scores - jnp.where(jnp.isfinite(largest), largest, 0)
    distance = -jnp.min(jnp.where(below > -jnp.inf, below, 0), axis=0)
    return (below / jnp.maximum(distance, jnp.finfo(scores.dtype).tiny)).astype(jnp.float32)


def rows_at(values: Array, indices: np.ndarray) -> Array:
    """Return the rows of (H, n) at constant, valid indices: (indices, n).

    A CPU gathers them by index; an accelerator slices each one, fused with the code that uses it.
    """
    if one_by_one():
        return values.at[indices].get(mode="promise_in_bounds")
    return jnp.stack([values[int(index)] for index in indices])


def sum_rows_at(values: Array, indices: np.ndarray, size: int) -> Array:
    """Sum the rows of (..., k, n) that have the same constant index (k,): (..., size, n).

    On a CPU a matrix product is fastest, on an accelerator sums that are fused with the computation of the values.
    """
    if one_by_one():
        return matmul(jnp.asarray(np.arange(size)[:, None] == indices, dtype=values.dtype), values)
    nothing = jnp.zeros_like(values[..., 0, :])
    sums = [sum((values[..., k, :] for k in np.flatnonzero(indices == place)), nothing) for place in range(size)]
    return jnp.stack(sums, axis=-2)


def sum_by_index(values: Array, indices: Array, size: int) -> Array:
    """Sum values (..., k, n) over k and n by their indices (k, n), which are below ``size``: (..., size)."""
    return jnp.zeros((*values.shape[:-2], size), values.dtype).at[..., indices].add(values)


def add_by_index(values: Array, indices: Array, more: Array) -> Array:
    """Add ``more`` (k, n) to the rows of values (H, n) given by ``indices`` (k, n), distinct within a column.

    On a CPU comparisons are used (four times as fast as scattered writes), on an accelerator scattered writes (twice as
    fast).
    """
    if one_by_one():
        places = jnp.arange(len(values))[:, None]
        for index, value in zip(indices, more, strict=True):
            values = values + jnp.where(index == places, value, 0)
        return values
    return values.at[indices, jnp.arange(values.shape[1])].add(more, unique_indices=True)


def stored(values: Any) -> Any:
    """Return the values unchanged; on a CPU they are computed once, where XLA would recompute them for each use."""
    return jax.lax.optimization_barrier(values) if one_by_one() else values


def starts_at_once(n_starts: int) -> int:
    """Return how many starts use memory at the same time in :func:`over_starts`."""
    return 1 if jax.default_backend() == "cpu" else min(n_starts, STARTS_ON_DEVICE)


def namespace(array: Any) -> Any:
    """Return ``jax.numpy`` for traced arrays and arrays on a device, else NumPy, for code that serves both."""
    return jnp if isinstance(array, jax.Array) else np


def key_from(random_state: np.random.RandomState) -> Array:
    """Draw the JAX key of a fit or a sample from scikit-learn's ``random_state``."""
    return jax.random.key(int(random_state.randint(np.iinfo(np.int32).max)))


def generator(key: Array, number: int) -> np.random.Generator:
    """Return a NumPy generator seeded by a key and a number, such as that of an iteration."""
    return np.random.default_rng(np.asarray(jax.random.key_data(jax.random.fold_in(key, number))))


DEVICES = {"auto": None, "cpu": "cpu", "gpu": "cuda"}


def use_device(name: str) -> str:
    """Select "cpu", "gpu" or JAX's default ("auto") as the device of this process; return JAX's name of it.

    This only works before the first computation of a process.
    """
    if name not in DEVICES:
        raise ValueError(f"Unknown device {name!r}. Known: {', '.join(DEVICES)}.")
    before = jax.config.values["jax_platforms"]
    if DEVICES[name] is not None:
        jax.config.update("jax_platforms", DEVICES[name])
    try:
        backend = jax.default_backend()
    except (AssertionError, RuntimeError) as error:  # JAX raises AssertionError if its CUDA plugin is not installed
        jax.config.update("jax_platforms", before)
        reason = "".join(f" ({line.rstrip('.')})" for line in str(error).splitlines()[:1])
        there_are = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        raise ValueError(
            f"JAX cannot use a {name} here{reason}; available devices: {there_are}. Use one of them (device 'auto'), "
            "or install the extra for NVIDIA GPUs: pip install 'multicause[cuda]'."
        ) from error
    if name != "auto" and backend != name:
        jax.config.update("jax_platforms", before)
        raise ValueError(f"JAX already computes on {backend} in this process, so it cannot use {name}.")
    return backend


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_from(size: str | int) -> int:
    """Return the number of bytes of a memory size such as ``"512MiB"``, ``"2 GB"`` or an integer."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0:
        return int(size)
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if match is None or match[2].upper() not in _UNITS or float(match[1]) <= 0:
        raise ValueError(
            f"A memory size must be a positive number of bytes or text such as '512MiB' or '2GB'; got {size!r}."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def check_room(n_rows: int, n_values: int, dtype: Any) -> None:
    """Raise MemoryError for arrays larger than the address space; XLA would end the process instead."""
    try:
        np.empty((n_rows, n_values), dtype=dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        size = n_rows * n_values * np.dtype(dtype).itemsize / 2**30
        raise MemoryError(
            f"{n_rows:,} rows of {n_values} values need {size:,.0f} GiB. Request fewer rows at once."
        ) from error
