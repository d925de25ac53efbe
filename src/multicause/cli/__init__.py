"""The command line: ``multicause demo``, ``multicause reproduce``."""

import sys


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from multicause.cli.commands import app
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"The command line needs the package {error.name!r}. Install it with: pip install 'multicause[app]'\n"
        )
        raise SystemExit(1) from None
    app()
