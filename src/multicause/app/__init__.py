"""The command line, reports and experiments. Nothing of the library imports this package."""
