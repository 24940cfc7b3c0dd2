"""`mechnum helix`: how much of the states at one position is a helix of a number."""

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
    MaxSum,
    Metric,
    ModelName,
    NPairs,
    Out,
    Quiet,
    Seed,
    Shots,
    TaskName,
    TemplateText,
    WrongToo,
)
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import chosen_task, drawn_pairs, numbers_in, position_of
from mechnum.files import check_writable


def helix(
    model: ModelName,
    position: Annotated[
        str,
        typer.Option(
            metavar="POSITION", help="a, b, end, or an index (negative ones from the end)."
        ),
    ] = "a",
    variables: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The numbers that the helix is of, such as 'a,b' or 'a+b'; by default the "
            "operand at its own position, and the answer elsewhere.",
        ),
    ] = None,
    periods: Annotated[
        str | None,
        typer.Option(
            metavar="T,T,...",
            help="The periods of the helix; by default of 2,5,10,100 those that the numbers can "
            "tell apart, or a modular net's own.",
        ),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Score every subset of the periods too.")
    ] = False,
    metric: Metric = "logit_diff",
    in_sample: Annotated[
        bool,
        typer.Option("--in-sample", help="Score numbers that were fitted, as the paper did."),
    ] = False,
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    pairs: NPairs = 100,
    wrong_too: WrongToo = False,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Fit a helix of a number to the states at one position, and test causally what it explains.

    Scores the helix and its rivals layer by layer, ablates the helix, and checks that it is a
    continuous curve. Writes report.html and results.nc into DIR and prints the best layers.
    """
    check_writable(out)
    chosen_periods = None if periods is None else numbers_in(periods, "--periods")
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.helix import measure_helix
        from mechnum.report import helix_summary, save

        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        accuracy = chosen.accuracy(loaded)
        place = position_of(position)
        vary = place if place in ("a", "b") else "any"
        drawn, said = drawn_pairs(chosen, loaded, pairs, vary, seed, wrong_too, accuracy)
        found = measure_helix(
            loaded,
            chosen,
            drawn,
            accuracy,
            place,
            variables=None if variables is None else variables.replace(" ", "").split(","),
            periods=chosen_periods,
            search=search,
            metric=metric,
            folds=None if in_sample else 5,
            seed=seed,
            said={**said, "command": command_line()},
        )
        page, data = save(found, out)
    to_stdout(helix_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")
