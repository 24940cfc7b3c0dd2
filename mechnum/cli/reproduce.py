"""`mechnum reproduce`: experiments of papers that need nets to be trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.options import Quiet
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.files import check_writable

reproduce = typer.Typer(
    help="Repeat an experiment of a paper, with the training that it needs.",
    no_args_is_help=True,
)


@reproduce.command()
def rescue(
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Seeds of each kind of net, from 0 on.")
    ] = 3,
    steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Training steps; by default the recipes' own."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")] = Path("rescue"),
    quiet: Quiet = False,
) -> None:
    """Train adders from random and from Fourier number vectors, and compare them.

    Zhou et al. 2024, section 5. Each run has a folder in DIR; the same command goes on where it was
    stopped, and trains nothing twice. Writes report.html and results.nc into DIR.
    """
    from mechnum.progress import working

    check_writable(out)
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.circuits.instruments.rescue import (
                measure_rescue,
                rescue_recipes,
                train_rescue,
            )
            from mechnum.report import rescue_summary, save
        recipes = rescue_recipes(seeds, steps)
        try:
            folders = train_rescue(recipes, out)
        except KeyboardInterrupt:
            typer.echo("stopped: the same command goes on from the last saved state", err=True)
            raise
        found = measure_rescue(recipes, folders, said={"command": command_line()})
        page, data = save(found, out)
    to_stdout(rescue_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")
