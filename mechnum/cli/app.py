"""The Typer app with its global options; one module for each command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mechnum.cli.beliefs import beliefs
from mechnum.cli.circuit import circuit
from mechnum.cli.circuits import circuits, run
from mechnum.cli.clock import clock
from mechnum.cli.clock_pizza import clock_pizza
from mechnum.cli.fetch import fetch
from mechnum.cli.filter import filter_
from mechnum.cli.fourier import fourier
from mechnum.cli.grokking import grokking
from mechnum.cli.helix import helix
from mechnum.cli.lens import lens
from mechnum.cli.models import models
from mechnum.cli.neurons import neurons
from mechnum.cli.numbers import numbers
from mechnum.cli.options import Quiet
from mechnum.cli.patch import patch
from mechnum.cli.paths import paths
from mechnum.cli.probe import probe
from mechnum.cli.reproduce import reproduce
from mechnum.cli.similarity import similarity
from mechnum.cli.steer import steer
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
    run,
    circuits,
    trace,
    patch,
    paths,
    circuit,
    clock,
    neurons,
    probe,
    similarity,
    steer,
    beliefs,
    helix,
    fourier,
    lens,
    filter_,
    grokking,
    clock_pizza,
    verify,
    numbers,
    models,
    fetch,
    train,
):
    # Python has a function called filter.
    app.command(command.__name__.rstrip("_").replace("_", "-"))(command)

app.add_typer(reproduce, name="reproduce")


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
        context.default_map = _quietly(app)


def _quietly(commands: typer.Typer) -> dict[str, Any]:
    """`--quiet` for every command, also those of groups."""
    found = {
        command.name or getattr(command.callback, "__name__", ""): {"quiet": True}
        for command in commands.registered_commands
    }
    groups = {
        group.name: _quietly(group.typer_instance)
        for group in commands.registered_groups
        if group.name and group.typer_instance
    }
    return found | groups
