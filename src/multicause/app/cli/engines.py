"""Options of ``multicause fit`` that select where it computes, such as ``--engine`` and ``--devices``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

ENGINES = ("local", "dask")
#: Names of the options, as parameters of commands.
ENGINE_OPTIONS = ("engine", "scheduler", "timeout", "n_jobs", "devices")


@dataclass(frozen=True)
class EngineChoice:
    """Engine options of a fit. They do not change what is learned, so a resumed run may choose others."""

    engine: str | None = None  # None: "dask" if there is a scheduler, else "local"
    scheduler: str | None = None
    n_jobs: int | None = None
    devices: str | None = None
    timeout: float | None = None  # seconds; None: the engine's own

    def __post_init__(self) -> None:
        if self.engine is not None and self.engine not in ENGINES:
            raise ValueError(f"Unknown engine {self.engine!r}. Known: {', '.join(ENGINES)}.")
        if self.name == "local" and self.scheduler is not None:
            raise ValueError(
                f"--scheduler {self.scheduler} is the address of a Dask cluster, but the engine is local. Use --engine "
                "dask, or leave out --scheduler."
            )
        if self.name == "local" and self.timeout is not None:
            raise ValueError("--timeout is a time limit of a Dask cluster. Use --engine dask, or leave out --timeout.")
        given = [
            option for option, value in (("--n-jobs", self.n_jobs), ("--devices", self.devices)) if value is not None
        ]
        if self.name == "dask" and given:
            raise ValueError(
                f"{given[0]} requires --engine local. On a Dask cluster, workers have the threads and devices that "
                "they were started with."
            )
        self._devices()

    @property
    def name(self) -> str:
        """Return the name of the engine."""
        return self.engine or ("local" if self.scheduler is None else "dask")

    def make(self, memory: str) -> Any:
        """Return the engine that these options describe, with this memory budget."""
        from multicause.engines import Dask, Local

        if self.name == "dask":
            limits = {} if self.timeout is None else {"timeout": self.timeout}
            return Dask(self.scheduler, memory_budget=memory, **limits)
        chosen: dict[str, Any] = {} if self.devices is None else {"devices": self._devices()}
        return Local(memory_budget=memory, n_jobs=self.n_jobs, **chosen)

    def _devices(self) -> str | int | None:
        if self.devices is None or self.devices == "all":
            return self.devices
        if re.fullmatch(r"[1-9]\d*", self.devices) is None:
            raise ValueError(f"--devices must be 'all' or a positive number of devices; got {self.devices!r}.")
        return int(self.devices)
