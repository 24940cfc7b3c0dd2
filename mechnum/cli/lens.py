"""`mechnum lens`: what each layer says of numbers, by frequency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import (
    Between,
    Device,
    Digits,
    Dtype,
    FourierKind,
    MaxSum,
    ModelName,
    NPrompts,
    Out,
    Quiet,
    Seed,
    Shots,
    TaskName,
    TemplateText,
    Top,
)
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import chosen_task, position_of
from mechnum.files import check_writable


def lens(
    model: ModelName,
    position: Annotated[
        str,
        typer.Option(metavar="POSITION", help="a, op, b, end, or an index (-1 is the last token)."),
    ] = "end",
    basis: FourierKind = "orthonormal",
    permutations: Annotated[
        int, typer.Option(min=19, help="Permutations of the number tokens, as a null for outliers.")
    ] = 99,
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    prompts: NPrompts = 500,
    seed: Seed = 0,
    top: Top = 10,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Show which waves over numbers each layer writes: the Fourier lens.

    Writes report.html and results.nc into DIR and prints the frequencies that stand out.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.fourier import lens_results
        from mechnum.report import lens_summary, save

        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        found = lens_results(
            loaded, chosen, prompts, position_of(position), basis, permutations, seed
        )
        found.attrs["command"] = command_line()
        page, data = save(found, out)
    to_stdout(lens_summary(found, top))
    typer.echo(f"\nwritten: {page} and {data}")
