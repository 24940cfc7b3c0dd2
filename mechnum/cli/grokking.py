"""`mechnum grokking`: how a net adds modulo p, and how it came to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, ModelName, ModularTaskName, Out, Quiet
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import modular_task, numbers_in
from mechnum.files import check_writable


def grokking(
    model: ModelName,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A run of `mechnum train`, or checkpoints named by their steps; by default the "
            "run in the model's own folder.",
        ),
    ] = None,
    layer: Annotated[int, typer.Option(help="Whose neurons; negative ones from the last.")] = -1,
    keys: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,...",
            help="Key frequencies; by default the neurons' or, without any, the embedding's.",
        ),
    ] = None,
    task: ModularTaskName = None,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Measure a net that adds modulo a prime: key frequencies, progress measures, and phases.

    Writes report.html and results.nc into DIR and prints losses and keys.
    """
    check_writable(out)
    with bars(quiet):
        net_task = modular_task(task)
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.grokking import measure_grokking
        from mechnum.report import grokking_summary, save
        from mechnum.training import history_of

        found = measure_grokking(
            loaded,
            net_task,
            keys=None if keys is None else numbers_in(keys, "--keys", int),
            history=history_of(model, run),
            layer=layer,
            said={"command": command_line()},
        )
        page, data = save(found, out)
    to_stdout(grokking_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")
