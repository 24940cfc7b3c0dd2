"""`mechnum clock`: which heads move the numbers, and what builds the sum and writes it out."""

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
from mechnum.cli.tasks import chosen_task
from mechnum.files import check_writable


def clock(
    model: ModelName,
    heads: Annotated[int, typer.Option(min=1, help="Heads to classify, at most.")] = 20,
    mlps: Annotated[int, typer.Option(min=1, help="MLPs of the circuit, at most.")] = 11,
    edges: Annotated[int, typer.Option(min=1, help="Edges of the circuit, at most.")] = 60,
    mixed: Annotated[
        int | None, typer.Option(min=0, help="Heads that are mixed; by default a fifth of them.")
    ] = None,
    periods: Annotated[
        str | None,
        typer.Option(metavar="T,T,...", help="Periods of the helices; by default the task's."),
    ] = None,
    metric: Metric = "logit_diff",
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    pairs: NPairs = 200,
    wrong_too: WrongToo = False,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Trace the clock: heads that move a and b, MLPs that add them, and what writes the sum.

    Half of the pairs choose nodes and edges, the other half measure them. Writes report.html,
    results.nc and circuit.json (EAP-IG's graph) into DIR and prints classes and stages.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.clock import trace_clock
        from mechnum.helix.basis import parse_periods
        from mechnum.patching.circuit.results import circuit_of
        from mechnum.report import clock_summary, save

        results = trace_clock(
            loaded,
            chosen_task(loaded, task, between, max_sum, shots, digits, template, seed),
            n_pairs=pairs,
            periods=None if periods is None else parse_periods(periods),
            n_heads=heads,
            n_mlps=mlps,
            n_edges=edges,
            n_mixed=mixed,
            metric=metric,
            correct_only=not wrong_too,
            seed=seed,
            command=command_line(),
        )
        page, data = save(results, out)
        found = circuit_of(results["circuit"].to_dataset())
        graph = found.save(out / "circuit.json", loaded.spec)
    to_stdout(clock_summary(results))
    typer.echo(f"\nwritten: {page}, {data} and {graph}")
