"""Options of ``multicause fit`` that select where it computes, such as ``--engine`` and ``--devices``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

ENGINES = ("local", "dask")
COMPUTING = "Computing and output"


@dataclass(frozen=True)
class EngineChoice:
    """Engine options of a fit. They do not change what is learned, so a resumed run may choose others."""

    engine: Annotated[
        str | None,
        typer.Option(
            help="local (this machine, the default) or dask (a cluster, or processes on this machine).",
            rich_help_panel=COMPUTING,
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler, such as tcp://scheduler:8786.", rich_help_panel=COMPUTING),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds to wait for the Dask scheduler and its workers; by default 30.", rich_help_panel=COMPUTING
        ),
    ] = None
    n_jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of blocks computed at a time on a CPU; by default all cores.", rich_help_panel=COMPUTING
        ),
    ] = None
    devices: Annotated[
        str | None,
        typer.Option(
            help="Number of GPUs of this machine to use, or 'all'; by default one.", rich_help_panel=COMPUTING
        ),
    ] = None

    def check(self) -> None:
        """Raise ValueError if an option has an invalid value, or is not one of the chosen engine."""
        if self.engine is not None and self.engine not in ENGINES:
            raise ValueError(f"Unknown engine {self.engine!r}. Known: {', '.join(ENGINES)}.")
        if self.name == "local" and self.scheduler is not None:
            raise ValueError(
                f"--scheduler {self.scheduler} is the address of a Dask cluster, but the engine is local. Use --engine "
                "dask, or leave out --scheduler."
            )
        if self.name == "local" and self.timeout is not None:
            raise ValueError("--timeout is a time limit of a Dask cluster. Use --engine dask, or leave out --timeout.")
        options = [
            option for option, value in (("--n-jobs", self.n_jobs), ("--devices", self.devices)) if value is not None
        ]
        if self.name == "dask" and options:
            raise ValueError(
                f"{options[0]} requires --engine local. On a Dask cluster, workers have the threads and devices that "
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


#: Names of the options, as parameters of commands.
ENGINE_OPTIONS = tuple(field.name for field in fields(EngineChoice))
