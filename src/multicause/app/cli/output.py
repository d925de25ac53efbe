"""Output of commands: text, tables, JSON, errors in one line, and exit codes."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from multicause.app.cli.quitting import INTERRUPTED, NO_RESULT

BAD_INPUT, FAILED = 2, 1
# Name under which the context of a command stores whether errors are also printed as JSON.
AS_JSON = "multicause.as_json"


class Output:
    """Output of a command: text and tables, or one JSON object."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(quiet=as_json)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line of text unchanged: brackets in a file name are not markup."""
        # Where output is not a terminal, a line stays whole, so that other programs can search it.
        whole = not self.console.is_terminal
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=whole)

    def table(
        self, title: str, headings: Sequence[str], lines: Sequence[Sequence[str | Text]], *, texts: int = 1
    ) -> None:
        """Print a table whose first columns, by default one, are text and whose others are numbers.

        Brackets are not markup. If there are several columns of text, the first has names, which stay whole.
        """
        table = Table(title=Text(title), title_justify="left", show_header=any(headings))
        for number, heading in enumerate(headings):
            justify: Literal["left", "right"] = "left" if number < texts else "right"
            table.add_column(Text(heading), justify=justify, no_wrap=number == 0 and texts > 1)
        for line in lines:
            table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in line))
        self.console.print(table)

    def working(self, text: str) -> AbstractContextManager[Any]:
        """Show a spinner with this text while the block runs, if output is a terminal."""
        shown = self.console.is_terminal and not self.as_json
        return self.console.status(Text(text, style="dim")) if shown else nullcontext()

    def result(self, **values: Any) -> None:
        """Store the values of the JSON object."""
        if self.as_json:
            sys.stdout.write(json.dumps(values, default=_plain, allow_nan=True) + "\n")


class Command(TyperCommand):
    """One command, whose help shows flags without the type of a value, as they have none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options, and the option for help."""
        return _with_plain_flags(super().get_params(ctx))


class Commands(TyperGroup):
    """Group of all commands; unknown commands and options are reported in one line, like other errors."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options before the name of a command, and the option for help."""
        return _with_plain_flags(super().get_params(ctx))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the options before the name of a command."""
        if not args:  # the help is shown
            return super().make_context(info_name, args, parent, **extra)
        as_json = "--json" in args
        with _usage_errors(as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[AS_JSON] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        with _usage_errors(ctx.meta.get(AS_JSON, False)):
            return super().invoke(ctx)


@contextmanager
def _usage_errors(as_json: bool) -> Iterator[None]:
    """Report errors of usage, which click raises for what was typed, in one line."""
    try:
        yield
    except Exception as error:
        # The error's class comes from click or from typer's own copy of it, depending on typer's version.
        if not hasattr(error, "format_message"):
            raise
        place = getattr(getattr(error, "ctx", None), "command_path", "multicause")
        text = f"{' '.join(error.format_message().split()).rstrip('.')}. See {place} --help."
        _print_error(text, BAD_INPUT, as_json)
        raise typer.Exit(BAD_INPUT) from None


def _with_plain_flags(parameters: list[Any]) -> list[Any]:
    """Return parameters of a command, in whose help typer writes "<bool>" behind flags unless they have a metavar."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


@contextmanager
def command(as_json: bool, verbose: bool) -> Iterator[Output]:
    """Run a command; report errors in one line with an exit code, and in full with --verbose."""
    try:
        yield Output(as_json)
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        _fail(describe(error), INTERRUPTED, as_json, verbose)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        _fail(describe(error), BAD_INPUT, as_json, verbose)
    except Exception as error:
        text = f"{type(error).__name__}: {describe(error)} (unexpected; --verbose shows where)"
        _fail(text, FAILED, as_json, verbose)


def describe(error: BaseException) -> str:
    """Return one line that describes an error, including its notes."""
    return " ".join([_what(error), *getattr(error, "__notes__", ())])


def _what(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return NO_RESULT
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename:
        return f"cannot write to {error.filename!r}: it is a file, but a folder is needed. Choose another path."
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename!r}: " if error.filename else ""
        return f"{place}{error.strerror}."
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError):
        return f"Not enough memory: {text.rstrip('.')}. Use less data, or float32 with --dtype float32."
    return text


def _fail(text: str, code: int, as_json: bool, verbose: bool) -> None:
    if verbose:
        sys.stderr.write(traceback.format_exc())
    _print_error(text, code, as_json)
    raise typer.Exit(code) from None


def _print_error(text: str, code: int, as_json: bool) -> None:
    sys.stderr.write(f"Error: {text}\n")
    if as_json:
        sys.stdout.write(json.dumps({"error": text, "exit_code": code}) + "\n")


def _plain(value: Any) -> Any:
    """Convert numbers and paths of other libraries to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
