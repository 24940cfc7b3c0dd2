"""`mechnum steer`: does a vector of the right answer repair wrong ones?"""

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
from mechnum.cli.tasks import chosen_task, numbers_in
from mechnum.files import check_writable


def steer(
    model: ModelName,
    probe: Annotated[
        Literal["param-sin", "fourier"], typer.Option(help="The probe that is inverted.")
    ] = "param-sin",
    alphas: Annotated[
        str,
        typer.Option(metavar="A,A,...", help="How much of the vector is mixed in, 0 to 1."),
    ] = "0.1,0.2,0.3,0.4,0.5,0.75,1",
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Steer after every Nth layer, from the last.")
    ] = 1,
    draws: Annotated[
        int, typer.Option(min=1, metavar="N", help="Draws of the solved questions of --shots.")
    ] = 1,
    random: Annotated[
        int, typer.Option(min=1, metavar="N", help="Random directions everywhere.")
    ] = 3,
    null: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Random directions at the chosen layer, as a null."),
    ] = 99,
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    prompts: NPrompts = 2000,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Mix the last state with vectors of the right answers, and count what that repairs and breaks.

    The vectors come from probes on other prompts; the right answers are used, so that this is no
    way to repair a model. Writes report.html and results.nc into DIR and prints the best layers.
    """
    check_writable(out)
    strengths = numbers_in(alphas, "--alphas")
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.steer import measure_steering
        from mechnum.report import save, steering_summary

        found = measure_steering(
            loaded,
            chosen_task(loaded, task, between, max_sum, shots, digits, template, seed),
            probe,
            draws,
            prompts,
            every,
            strengths,
            random,
            null,
            seed,
            {"command": command_line()},
        )
        page, data = save(found, out)
    to_stdout(steering_summary(found))
    typer.echo(f"\nwritten: {page} and {data}")
