"""The Typer app with its global options; one module for each command."""

from __future__ import annotations

from typing import Annotated

import typer

from mechnum.cli.beliefs import beliefs
from mechnum.cli.circuit import circuit
from mechnum.cli.clock import clock
from mechnum.cli.fetch import fetch
from mechnum.cli.filter import filter_
from mechnum.cli.fourier import fourier
from mechnum.cli.helix import helix
from mechnum.cli.lens import lens
from mechnum.cli.models import models
from mechnum.cli.neurons import neurons
from mechnum.cli.numbers import numbers
from mechnum.cli.options import Quiet
from mechnum.cli.patch import patch
from mechnum.cli.paths import paths
from mechnum.cli.trace import trace
from mechnum.cli.train import train
from mechnum.cli.verify import verify

# Plain help and plain tracebacks: loading Rich would triple the time that `--help` takes.
app = typer.Typer(
    name="mechnum",
    help="How transformers represent numbers and compute with them.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for command in (
    trace,
    patch,
    paths,
    circuit,
    clock,
    neurons,
    beliefs,
    helix,
    fourier,
    lens,
    filter_,
    verify,
    numbers,
    models,
    fetch,
    train,
):
    # Python has a function called filter.
    app.command(command.__name__.rstrip("_"))(command)


def _print_version(asked: bool) -> None:
    if asked:
        from mechnum import __version__

        typer.echo(f"mechnum {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    quiet: Quiet = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if quiet:
        names = [command.name or "" for command in app.registered_commands]
        context.default_map = {name: {"quiet": True} for name in names}
