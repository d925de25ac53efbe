"""The only file that configures JAX: precision of numbers and of matrix products, and memory sizes."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import update_wrapper
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array
# Starts that an accelerator works on at the same time; each needs memory of its own.
STARTS_ON_DEVICE = 4


def double_precision() -> AbstractContextManager[Any]:
    """Make 64-bit numbers available inside a ``with`` block, whatever the user's own JAX settings are.

    Arrays keep the dtype of the data; the switch only allows sums such as the bound to be accumulated in
    double precision while the arrays are in single precision.
    """
    return jax.enable_x64(True)


def matmul(a: Array, b: Array) -> Array:
    """Matrix product in the full precision of its operands.

    GPUs would otherwise round single-precision operands to 10 bits (TF32), which moved log-likelihoods by 4e-5.
    """
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def sum_in_double(values: Array, axis: int | None = None) -> Array:
    """Sum that is accumulated in double precision: near convergence a single-precision bound stops moving."""
    return jnp.sum(values, axis=axis, dtype=jnp.float64)


# Programs run side by side in threads of our own (see :mod:`multicause.runtime.parallel`). Threads that XLA would start
# for each of them would compete with these for the same cores.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


def compiled(function: Callable[..., Any], static: tuple[int, ...] = (0,)) -> Any:
    """Compile a function that is called from Python, not from another program, to run in one thread of a CPU.

    The arguments at the places ``static``, such as a ``model``, are hashable: there is one program for equal ones.
    """
    return Compiled(function, static)


class Compiled:
    """A compiled function of a module, which other processes find by its name and so compile once."""

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

    On a CPU one start after the other, because its arrays then stay in the cache (for 8 starts of 500 × 1024 states
    in double precision, 2.0 instead of 6.4 ms a start); on other devices some at once.
    """
    batch = starts_at_once(STARTS_ON_DEVICE)
    return lambda *arguments: jax.lax.map(
        lambda one: function(*one), arguments, batch_size=None if batch == 1 else batch
    )


def over_active(function: Callable[..., Any], active: Array, *arguments: Any) -> Any:
    """Apply a function to the starts that are active (starts,), within one program; results of the others are zero.

    Its time follows the number of active starts, so that one program serves one start and many. See
    :func:`over_starts` for how many are worked on at once.
    """
    n_starts = len(active)
    if n_starts == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*_pick(arguments, 0)))
    batch = starts_at_once(n_starts)
    # Active starts come first; places beyond them hold a number that no start has, and are neither read nor written.
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
    return jax.tree.map(lambda leaf: leaf[which], arguments)


def select(which: Array, new: Any, old: Any) -> Any:
    """Return the new records of some starts (starts,) and the old ones of the others."""
    return jax.tree.map(
        lambda a, b: jnp.where(jnp.reshape(which, which.shape + (1,) * (jnp.ndim(a) - 1)), a, b), new, old
    )


def largest_with_share(
    values: Array, weights: Array, share: Array, total: Callable[[Array], Array] = lambda own: own
) -> Array:
    """Return the largest of all values such that values of at least it have this share of all weight.

    With equal weights this is the k-th largest of N values, k = ⌈share · N⌉. The value is found from its highest bits
    to its lowest, which takes sums over all values and no sorting: on a CPU bit by bit, on an accelerator, where
    starting a sum takes longer than computing it, four bits at a time. Where values are spread over devices, ``total``
    adds a number up over all of them.
    """
    signed, unsigned = (jnp.int32, jnp.uint32) if values.dtype == jnp.float32 else (jnp.int64, jnp.uint64)
    n_bits = jnp.iinfo(unsigned).bits
    top = jnp.asarray(1, unsigned) << (n_bits - 1)
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    # Keys have the order of the values: negative numbers are turned round, and lie below the others.
    keys = jnp.where(jax.lax.bitcast_convert_type(values, signed) < 0, ~bits, bits | top)
    # Products such as 0.9 · 10 may end just above a whole number.
    target = share * total(sum_in_double(weights)) * (1 - 4 * np.finfo(float).eps)

    at_once = 1 if one_by_one() else 4
    digits = jnp.arange(1, 2**at_once, dtype=unsigned)

    def add_digit(number: Array, found: Array) -> Array:
        more = found | (digits << (n_bits - at_once * (number + 1)).astype(unsigned))
        reached = [total(sum_in_double(jnp.where(keys >= one, weights, 0))) >= target for one in more]
        # The larger the digit, the less weight reaches it.
        return jnp.max(jnp.where(jnp.stack(reached), more, found))

    found = jax.lax.fori_loop(0, n_bits // at_once, add_digit, jnp.zeros((), unsigned))
    found = jnp.where(found >= top, found & ~top, ~found)
    return jax.lax.bitcast_convert_type(found, values.dtype)


# Squarings in :func:`largest_eigenvalue`.
SQUARINGS = 8


def largest_eigenvalue(matrix: Array) -> Array:
    """Return a tight upper bound of the largest eigenvalue of a positive semidefinite matrix (H, H).

    λ ≤ (tr Aᵏ)^(1/k) ≤ H^(1/k) λ, here with k = 256: exact to rounding unless the next eigenvalue is nearly as large,
    and never more than 2 % too large for H = 100. It takes a few products where LAPACK would start threads, which in a
    loop over small batches took ten times as long as all other work.
    """

    def normalized(matrix: Array) -> tuple[Array, Array]:
        trace = jnp.trace(matrix)
        # A matrix of zeros stays as it is.
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
    """Bytes of temporary arrays with which a block runs fastest, or None where larger is always better.

    On a CPU they should stay in its cache: 50000 rows of 1024 states take 88 ms in blocks of 2000 rows and 652 ms in
    one block (single precision; 176 and 1097 ms in double precision, in blocks of 1000 rows).
    """
    return 24 * 2**20 if jax.default_backend() == "cpu" else None


def on_cpu() -> bool:
    """Return whether computations run on a CPU by default."""
    return jax.default_backend() == "cpu"


def one_by_one() -> bool:
    """Whether features are best worked through one after the other, each a vector over rows, instead of all at once.

    So it is on a CPU, whose cache is small and whose arithmetic is in vectors. Accelerators want one large program.
    """
    return jax.default_backend() == "cpu"


def sum_over_features(function: Callable[..., Array], zero: Array, *arrays: Any) -> Array:
    """Σ_d ``function(array_d, ...)`` over the first axis of arrays or records of such; ``zero`` has a term's shape."""
    if one_by_one():
        return jax.lax.scan(lambda total, one: (total + function(*one), None), zero, arrays)[0]
    return jnp.sum(jax.vmap(function)(*arrays), axis=0)


def indices_of_largest(scores: Array, k: int) -> Array:
    """The k largest of each column of (H, n), best first, as indices (k, n); the lower index wins a tie.

    Ranks need no double precision: ``top_k`` takes twenty times as long in it. On an accelerator, each pass finds the
    largest key below the last one, where a key is a score and, in its lower half, an index; that is faster than the
    sorting behind ``top_k``.
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
    """Scores (H, n) in the range of single precision, in the same order within each column.

    Each column becomes its distance from its largest score, as part of the largest distance: what is near the largest
    score, where ranks matter, keeps most digits.
    """
    if scores.dtype == jnp.float32:
        return scores
    largest = jnp.max(scores, axis=0)
    below = scores - jnp.where(jnp.isfinite(largest), largest, 0)
    distance = -jnp.min(jnp.where(below > -jnp.inf, below, 0), axis=0)
    return (below / jnp.maximum(distance, jnp.finfo(scores.dtype).tiny)).astype(jnp.float32)


def rows_at(values: Array, indices: np.ndarray) -> Array:
    """Return the rows with these indices, which are constants, and known to exist, of (H, n): (indices, n).

    A CPU reads them by their indices, an accelerator each by itself, as part of what uses them.
    """
    if one_by_one():
        return values.at[indices].get(mode="promise_in_bounds")
    return jnp.stack([values[int(index)] for index in indices])


def sum_rows_at(values: Array, indices: np.ndarray, size: int) -> Array:
    """Σ of the rows of (..., k, n) that have the same index (k,), which is a constant: (..., size, n).

    A CPU is fastest by a matrix product, an accelerator by sums that are part of what computes the values.
    """
    if one_by_one():
        return matmul(jnp.asarray(np.arange(size)[:, None] == indices, dtype=values.dtype), values)
    nothing = jnp.zeros_like(values[..., 0, :])
    sums = [sum((values[..., k, :] for k in np.flatnonzero(indices == place)), nothing) for place in range(size)]
    return jnp.stack(sums, axis=-2)


def sum_by_index(values: Array, indices: Array, size: int) -> Array:
    """Σ over k and n of values (..., k, n) at their indices (k, n) out of ``size``: (..., size)."""
    return jnp.zeros((*values.shape[:-2], size), values.dtype).at[..., indices].add(values)


def add_by_index(values: Array, indices: Array, more: Array) -> Array:
    """Values (H, n) plus ``more`` (k, n) in the rows that ``indices`` (k, n) name, which differ within a column.

    A CPU compares (four times as fast there as scattered writes), an accelerator writes (twice as fast).
    """
    if one_by_one():
        places = jnp.arange(len(values))[:, None]
        for index, value in zip(indices, more, strict=True):
            values = values + jnp.where(index == places, value, 0)
        return values
    return values.at[indices, jnp.arange(values.shape[1])].add(more, unique_indices=True)


def stored(values: Any) -> Any:
    """The same values; a CPU writes them to memory once, where its compiler would compute them for each use again."""
    return jax.lax.optimization_barrier(values) if one_by_one() else values


def starts_at_once(n_starts: int) -> int:
    """How many starts take memory at the same time in :func:`over_starts`."""
    return 1 if jax.default_backend() == "cpu" else min(n_starts, STARTS_ON_DEVICE)


def namespace(array: Any) -> Any:
    """``jax.numpy`` for what is traced or on a device, NumPy for the rest: code that serves both is written once."""
    return jnp if isinstance(array, jax.Array) else np


def key_from(random_state: np.random.RandomState) -> Array:
    """Draw the one JAX key that a fit or a sample uses from scikit-learn's ``random_state``."""
    return jax.random.key(int(random_state.randint(np.iinfo(np.int32).max)))


def generator(key: Array, number: int) -> np.random.Generator:
    """Random numbers on the host that belong to a key and a number, such as that of an iteration."""
    return np.random.default_rng(np.asarray(jax.random.key_data(jax.random.fold_in(key, number))))


DEVICES = {"auto": None, "cpu": "cpu", "gpu": "cuda"}


def use_device(name: str) -> str:
    """Compute on "cpu", on "gpu" or where JAX would ("auto") from now on; returns what JAX calls it.

    Only a process that has not computed yet can choose.
    """
    if name not in DEVICES:
        raise ValueError(f"Unknown device {name!r}. Known: {', '.join(DEVICES)}.")
    before = jax.config.values["jax_platforms"]
    if DEVICES[name] is not None:
        jax.config.update("jax_platforms", DEVICES[name])
    try:
        backend = jax.default_backend()
    except (AssertionError, RuntimeError) as error:  # JAX raises the former where its CUDA plugin is not installed
        jax.config.update("jax_platforms", before)
        reason = "".join(f" ({line.rstrip('.')})" for line in str(error).splitlines()[:1])
        there_are = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        raise ValueError(
            f"JAX can use no {name} here{reason}; the devices there are: {there_are}. Use one of them (--device auto), "
            "or for NVIDIA GPUs install the extra: pip install 'multicause[cuda]'."
        ) from error
    if name != "auto" and backend != name:
        jax.config.update("jax_platforms", before)
        raise ValueError(f"JAX computes on {backend} in this process already, not on {name}.")
    return backend


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_from(size: str | int) -> int:
    """Read a memory size such as ``"512MiB"``, ``"2 GB"`` or a number of bytes."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0:
        return int(size)
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
    if match is None or match[2].upper() not in _UNITS or float(match[1]) <= 0:
        raise ValueError(
            f"A memory size must be a positive number of bytes or text such as '512MiB' or '2GB'; got {size!r}."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def check_room(n_rows: int, n_values: int, dtype: Any) -> None:
    """Refuse more rows than memory can ever hold, since XLA would end the whole process when it finds out."""
    try:
        np.empty((n_rows, n_values), dtype=dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        size = n_rows * n_values * np.dtype(dtype).itemsize / 2**30
        raise MemoryError(
            f"{n_rows:,} rows of {n_values} values need {size:,.0f} GiB. Ask for fewer at once."
        ) from error
