"""Persistent compilation cache, so that a second run of a script does not compile its programs again."""

from __future__ import annotations

import os
import sys
from os import PathLike
from pathlib import Path

from multicause.runtime.user_warnings import warn_user

# Programs that compile faster than this, in seconds, are not cached.
LEAST_SECONDS = 0.2
# JAX's own setting, which has precedence.
VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def enable_compilation_cache(folder: str | PathLike[str] | None = None) -> Path | None:
    """Cache compiled programs in a folder, for this process and later ones.

    It has no effect if you have configured JAX's cache yourself (``JAX_COMPILATION_CACHE_DIR`` or
    ``jax_compilation_cache_dir``). The command line calls it for every command.

    Parameters
    ----------
    folder : path-like, optional
        Folder of the cache; by default ``multicause`` in the user's cache folder.

    Returns
    -------
    Path or None
        The folder, or None if the cache is not used: because JAX's cache is configured already or, with a warning,
        because the folder is not writable.

    Examples
    --------
    >>> import tempfile
    >>> from multicause import enable_compilation_cache
    >>> folder = enable_compilation_cache(tempfile.mkdtemp())
    """
    import jax

    if os.environ.get(VARIABLE) or jax.config.values["jax_compilation_cache_dir"]:
        return None
    path = default_folder() if folder is None else Path(folder)
    problem = make_writable(path)
    if problem:
        warn_user(problem)
        return None
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return path


def enable_in_environment() -> str:
    """Enable the cache by environment variables, before JAX is imported; return why it cannot be used, or ""."""
    if os.environ.get(VARIABLE):
        return ""
    path = default_folder()
    problem = make_writable(path)
    if not problem:
        os.environ[VARIABLE] = str(path)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(LEAST_SECONDS))
    return problem


def make_writable(path: Path) -> str:
    """Create a folder if it does not exist; return why it is not writable, or an empty string if it is."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return (
            f"Cannot cache compiled programs in {path} ({error.strerror or error}), so the next process will compile "
            f"them again. Make the folder writable, or set {VARIABLE} to another one."
        )
    return ""


def default_folder() -> Path:
    """Return the folder of the cache inside the operating system's user cache folder."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "multicause"
