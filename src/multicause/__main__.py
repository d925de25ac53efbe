"""``python -m multicause`` is the same as the command ``multicause``."""

from multicause.app.cli import main

main()
