"""What is faster on a CPU, whose cache is small, and what on an accelerator."""

from typing import Any

import jax
import numpy as np


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


def on_host(record: Any) -> Any:
    """Return a record whose numbers and arrays are NumPy arrays, read-only views of those of a CPU.

    For small arrays of a CPU, ``jax.device_get`` takes ten times as long, which matters in loops of EM; those of an
    accelerator are copied at once.
    """
    return jax.tree.map(np.asarray, record) if on_cpu() else jax.device_get(record)
