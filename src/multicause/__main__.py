"""``python -m multicause`` is the same as the command ``multicause``."""

from multicause.cli import main

main()
