"""`mechnum trace`: the first look at how a model adds, as one page."""

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
    NPairs,
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
from mechnum.cli.tasks import chosen_task
from mechnum.files import check_writable


def trace(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="A bundled name, smollm2, a Hugging Face id, a folder, a GGUF or net.toml file.",
        ),
    ] = "adder-gptj",
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    pairs: NPairs = 100,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Trace how a model adds, as one HTML page.

    Writes report.html and results.nc into DIR and prints a summary.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.trace import trace as run_trace
        from mechnum.report import save, trace_summary

        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        results = run_trace(loaded, chosen, n_pairs=pairs, seed=seed)
        results.attrs["command"] = command_line()
        page, data = save(results, out)
    to_stdout(trace_summary(results))
    typer.echo(f"\nwritten: {page} and {data}")
