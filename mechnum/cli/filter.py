"""`mechnum filter`: what the model answers without some waves over numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
)
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import chosen_task, position_of
from mechnum.errors import MechnumError
from mechnum.files import check_writable


def filter_(
    model: ModelName,
    tau: Annotated[int, typer.Option(min=1, help="Where low components end.")] = 50,
    tau_unit: Annotated[
        Literal["row", "frequency"],
        typer.Option(help="What tau counts: rows of the basis, two for a frequency, or waves."),
    ] = "row",
    single: Annotated[
        str | None,
        typer.Option(metavar="K,K", help="Also keep one of these frequencies at a time."),
    ] = None,
    without: Annotated[
        str | None, typer.Option(metavar="K,K", help="Also remove these frequencies together.")
    ] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="FIRST-LAST", help="Layers to filter; all by default.")
    ] = None,
    position: Annotated[
        str,
        typer.Option(metavar="POSITION", help="all at once, or a, op, b, end, or an index."),
    ] = "all",
    basis: FourierKind = "orthonormal",
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    prompts: NPrompts = 500,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Remove waves over numbers from what attention and MLPs write.

    Writes report.html and results.nc into DIR and prints loss and accuracy.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.filters import measure_filters
        from mechnum.report import filter_summary, save
        from mechnum.tasks.numbers import parse_range

        found = measure_filters(
            loaded,
            chosen_task(loaded, task, between, max_sum, shots, digits, template, seed),
            tau,
            tau_unit,
            _frequencies(single),
            _frequencies(without),
            layers=None if layers is None else parse_range(layers),
            position=position_of(position),
            basis=basis,
            n_prompts=prompts,
            seed=seed,
            said={"command": command_line()},
        )
        page, data = save(found, out)
    to_stdout(filter_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")


def _frequencies(text: str | None) -> list[int]:
    """`20,40` as numbers.

    Raises:
        MechnumError: it is something else.
    """
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if unreadable := [word for word in words if not (word.isascii() and word.isdecimal())]:
        raise MechnumError(f"{unreadable[0]!r} is not a frequency: write whole numbers, as 20,40")
    return [int(word) for word in words]
