"""`mechnum train`: repeat the training run of a bundled model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechnum.cli.options import Quiet
from mechnum.cli.progress import bars
from mechnum.cli.tables import print_table
from mechnum.errors import MechnumError
from mechnum.files import check_writable

if TYPE_CHECKING:
    from mechnum.training import Score

# How much of the loss curve is printed.
_LINES = 8


def train(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A recipe, such as adder-gptj, clock-113 or mess3."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write; ./NAME by default.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a bundled model anew, or go on with a run that was stopped, and write its folder.

    The loss curve is in training/report.html within the folder, beside the state of the run. What
    is measured along the run, of nets that keep snapshots, is in measures.nc.
    """
    from mechnum.progress import working

    folder = out or Path(name)
    check_writable(folder)
    with bars(quiet):
        with working("loading the libraries"):
            import xarray as xr

            from mechnum.circuits.instruments.along_training import measure_along_training
            from mechnum.models import bundled, load
            from mechnum.report import save, write_netcdf
            from mechnum.training import (
                export,
                find_recipe,
                history_of,
                read_log,
                training_curves,
            )
            from mechnum.training import train as run_recipe
            from mechnum.training.bundle import run_folder
            from mechnum.training.checkpoint import load_state
            from mechnum.training.history import MEASURES_FILE
        recipe = find_recipe(name)
        run = run_folder(folder)
        try:
            run_recipe(recipe, run)
        except KeyboardInterrupt:
            state = load_state(run)
            step = state.step if state else 0
            typer.echo(f"stopped: the same command goes on from step {step}", err=True)
            raise
        with working("writing the model"):
            card = export(recipe, run, folder)
            page, _ = save(training_curves(run), run)
        try:
            measures = measure_along_training(load(folder), history_of(folder))
            if measures is not None:
                write_netcdf(xr.DataTree(measures), folder / MEASURES_FILE)
        except MechnumError as reason:
            typer.echo(f"nothing is measured along the run: {reason}", err=True)
    _print_curve(read_log(run))
    # Commands take a name alone for the model that comes with the package.
    place = f"./{folder}" if str(folder) in bundled() else folder
    typer.echo(
        f"\n{name} is in {place}; as stored there, its {card.score}; its curves are in {page}"
    )


def _print_curve(scores: list[Score]) -> None:
    """The end of the loss curve."""
    shown = scores[-_LINES:]
    print_table(
        ("step", *shown[0].cells()), [(str(score.step), *score.cells().values()) for score in shown]
    )
