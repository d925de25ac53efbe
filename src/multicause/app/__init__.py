"""Command line, reports and experiments. Nothing in the library imports this package."""
