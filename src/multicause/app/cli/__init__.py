"""Command line ``multicause``, with one file for each command or group of commands."""

import sys


def main() -> None:
    """Run the command line, or report a missing package."""
    from multicause.app.cli.quitting import INTERRUPTED, install, leave

    install(as_json="--json" in sys.argv)  # before the imports that take time

    from multicause.runtime.compilation_cache import enable_in_environment

    problem = enable_in_environment()
    if problem:
        sys.stderr.write(f"{problem}\n")
    try:
        from multicause.app.cli.commands import app
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"The command line needs the package {error.name!r}. Install it with: pip install 'multicause[app]'\n"
        )
        raise SystemExit(1) from None
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            leave()
        raise
