"""`mechnum clock-pizza`: by which algorithm a net adds modulo p."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, ModelName, ModularTaskName, Out, Quiet
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import modular_task
from mechnum.files import check_writable


def clock_pizza(
    model: ModelName,
    triples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Triples (a, b, c) of the symmetricity.")
    ] = 100,
    circles: Annotated[
        int, typer.Option(min=1, metavar="N", help="Circles that are isolated, the strongest.")
    ] = 6,
    task: ModularTaskName = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw other triples than the published ones.")
    ] = None,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Tell whether a net adds modulo a prime like a clock or like a pizza, with every figure.

    Writes report.html and results.nc into DIR and prints the figures and the verdict.
    """
    check_writable(out)
    with bars(quiet):
        net_task = modular_task(task)
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.clock_pizza import measure_clock_pizza
        from mechnum.report import clock_pizza_summary, save

        found = measure_clock_pizza(
            loaded,
            net_task,
            n=triples,
            seed=seed,
            n_circles=circles,
            said={"command": command_line()},
        )
        page, data = save(found, out)
    to_stdout(clock_pizza_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")
