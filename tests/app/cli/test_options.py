"""Options that several commands share, and parsing of their values."""

from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from multicause.app.cli.commands import app
from multicause.app.cli.options import FileOptions, shape_from, whole_numbers, with_option_groups
from multicause.datasets.reading import Reading


def test_a_group_of_options_becomes_options_of_a_command():
    cli, found = typer.Typer(), []

    @cli.command()
    @with_option_groups
    def show(name: str, *, files: FileOptions, force: bool = False) -> None:
        found.append((name, files, force))

    assert CliRunner().invoke(cli, ["a", "--sep", ";", "--no-header"]).exit_code == 0
    assert CliRunner().invoke(cli, ["b", "--channel", "1", "--force"]).exit_code == 0
    assert found == [("a", FileOptions(separator=";", header=False), False), ("b", FileOptions(channel=1), True)]
    assert CliRunner().invoke(cli, ["a", "--channel", "-1"]).exit_code == 2


def test_options_of_files_are_settings_of_reading():
    assert {field.name for field in fields(FileOptions)} <= {field.name for field in fields(Reading)}


@pytest.mark.parametrize("name", ["fit", "transform", "reconstruct", "report"])
def test_all_commands_that_read_files_have_the_same_options(name):
    command = typer.main.get_command(app).commands[name]
    assert {field.name for field in fields(FileOptions)} <= {option.name for option in command.params}


def test_values_are_parsed():
    assert whole_numbers("20, 5", "--components") == [5, 20]
    assert shape_from("10x12", "--patches") == (10, 12)
    with pytest.raises(ValueError, match="--components must be a whole number of at least 1"):
        whole_numbers("5,5", "--components")
    with pytest.raises(ValueError, match="--patches must be a height and a width such as 10x10; got '9'"):
        shape_from("9", "--patches")
