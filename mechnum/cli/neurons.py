"""`mechnum neurons`: what each neuron does to the answer, and what it computes."""

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
    Top,
    WrongToo,
)
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import chosen_task, drawn_pairs, numbers_in
from mechnum.files import check_writable


def neurons(
    model: ModelName,
    described: Annotated[
        int,
        typer.Option(
            "--neurons", min=1, metavar="N", help="How many neurons, the best ones, are described."
        ),
    ] = 100,
    by: Annotated[
        Literal["estimate", "direct"],
        typer.Option(help="Best by the estimated total effect, or by the direct effect."),
    ] = "estimate",
    of: Annotated[
        Literal["pre", "hidden"],
        typer.Option(help="Fit waves to what the activation function reads, or gives."),
    ] = "pre",
    periods: Annotated[
        str | None,
        typer.Option(
            metavar="T,T,...",
            help="The periods of the waves; by default of 2,5,10,100 those that the numbers can "
            "tell apart, or a modular net's own.",
        ),
    ] = None,
    metric: Metric = "logit_diff",
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    pairs: NPairs = 100,
    wrong_too: WrongToo = False,
    seed: Seed = 0,
    top: Top = 10,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Rank all neurons by their effects, and say what the best ones compute.

    Fits waves to every neuron, matches the best ones with heuristics, and measures how many are
    needed. Writes report.html, results.nc, neurons.csv and neurons.parquet into DIR and prints the
    first K neurons.
    """
    check_writable(out)
    chosen_periods = None if periods is None else numbers_in(periods, "--periods")
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.neurons import measure_neurons
        from mechnum.report import neurons_summary, save, write_tables

        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        accuracy = chosen.accuracy(loaded)
        drawn, said = drawn_pairs(chosen, loaded, pairs, "any", seed, wrong_too, accuracy)
        found = measure_neurons(
            loaded,
            chosen,
            drawn,
            accuracy,
            top=described,
            by=by,
            of=of,
            fit_periods=chosen_periods,
            metric=metric,
            seed=seed,
            said={**said, "command": command_line()},
        )
        written = [*save(found, out), *write_tables(found, out)]
    to_stdout(neurons_summary(found, top))
    typer.echo(f"\nwritten: {', '.join(map(str, written[:-1]))} and {written[-1]}")
