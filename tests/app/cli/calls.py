"""Calls of the command line in this process."""

import json

from typer.testing import CliRunner

from multicause.app.cli.commands import app


def call(*words):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def result_of(*words):
    """The JSON that a command prints, and nothing else on its standard output."""
    run = call(*words, "--json")
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def plain(text):
    """A message without the line breaks that depend on the width of the terminal."""
    return " ".join(text.split())
