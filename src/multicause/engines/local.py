"""Engine for data in the memory of this process, computed on one device or on all cores of the CPU."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import numpy as np

from multicause.arrays import bytes_from
from multicause.engines.array_sources import as_source
from multicause.engines.base import ROWS, Data, Engine
from multicause.engines.local_data import LocalData
from multicause.engines.source import Source
from multicause.engines.streamed import StreamedData


class Local(Engine):
    """Engine that keeps data in memory and uses all cores, or the accelerator that JAX finds.

    Parameters
    ----------
    memory_budget : str or int, default="2GiB"
        Largest memory of the temporary arrays of one block, as a number of bytes or a string such as "512MiB". On a
        CPU, blocks are smaller if that is faster. Memory maps, HDF5 and zarr arrays that are larger are not loaded but
        read in every pass.
    n_jobs : int, optional
        Number of blocks that are computed at the same time on a CPU. None means the ``n_jobs`` of an enclosing
        ``joblib.parallel_config``, or else all cores that this process may use (fewer if ``OMP_NUM_THREADS`` says so,
        as in worker processes of joblib); −1 means all cores. The result does not depend on it.
    devices : "all", int or tuple of jax.Device, optional
        JAX devices over which rows are distributed, such as all GPUs of this machine. None uses JAX's default device.
        The memory budget applies to each device.
    """

    in_this_process = True

    def __init__(self, *, memory_budget: str | int = "2GiB", n_jobs: int | None = None, devices: Any = None) -> None:
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.devices = devices

    def mesh(self) -> jax.sharding.Mesh | None:
        """Return the mesh of devices over which rows are distributed, or None for one device."""
        if self.devices is None:
            return None
        known = jax.devices()
        if isinstance(self.devices, str) and self.devices == "all":
            chosen = known
        elif isinstance(self.devices, Integral) and not isinstance(self.devices, bool):
            if not 1 <= int(self.devices) <= len(known):
                raise ValueError(
                    f"devices={self.devices} must be at least 1 and at most the number of devices; JAX finds "
                    f"{len(known)}: {', '.join(map(str, known))}."
                )
            chosen = known[: int(self.devices)]
        elif isinstance(self.devices, list | tuple) and self.devices:
            chosen = list(self.devices)
            gone = [device for device in chosen if device not in known]
            if gone:
                raise ValueError(
                    f"{', '.join(map(str, gone))} cannot be used in this process; JAX finds "
                    f"{', '.join(map(str, known))}."
                )
            if len(set(chosen)) < len(chosen):
                raise ValueError(f"devices must be different from each other; got {', '.join(map(str, chosen))}.")
        else:
            raise ValueError(f"devices must be 'all', a number, devices of JAX, or None; got {self.devices!r}.")
        return None if chosen == known[:1] else jax.sharding.Mesh(np.array(chosen), (ROWS,))

    def settings_to_save(self) -> dict[str, Any]:
        """Return the settings with the number of devices instead of the devices, which exist in this process only."""
        devices = self.devices
        return {
            **self.get_params(deep=False),
            "devices": len(devices) if isinstance(devices, list | tuple) else devices,
        }

    @classmethod
    def accepts(cls, X: Any) -> bool:
        """Return True: this engine is the default one for all data that no other engine accepts."""
        return True

    def source(self, X: Any) -> Source | None:
        """Return the source of rows that are in a file and exceed the memory budget, else None."""
        source = as_source(X)
        return None if source is None or source.n_bytes <= bytes_from(self.memory_budget) else source

    def load(self, X: np.ndarray | Source, weights: np.ndarray | None = None, refusal: str | None = None) -> Data:
        """Return a handle on arrays, which are not copied until they are arranged in blocks, or on a source."""
        if isinstance(X, Source):
            X.check_from_now(refusal)
            return StreamedData(self, X, weights)
        return LocalData(self, X, np.ones(len(X), dtype=X.dtype) if weights is None else weights)
