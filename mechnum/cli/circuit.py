"""`mechnum circuit`: which edges do the task, and whether they are the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import (
    Between,
    Device,
    Digits,
    Direction,
    Dtype,
    MaxSum,
    Metric,
    ModelName,
    NPairs,
    Out,
    PutIn,
    Quiet,
    Seed,
    Shots,
    TaskName,
    TemplateText,
    Top,
    Vary,
    WrongToo,
)
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import chosen_task, drawn_pairs
from mechnum.files import check_writable


def circuit(
    model: ModelName,
    edges: Annotated[int, typer.Option(min=1, help="Size of the circuit.")] = 50,
    method: Annotated[
        Literal["eap", "eap-ig", "exact"],
        typer.Option(
            help="How edges are scored: by gradients, or exactly, one suffix run for each."
        ),
    ] = "eap-ig",
    metric: Metric = "logit_diff",
    direction: Direction = "denoise",
    values: PutIn = "other",
    task: TaskName = None,
    between: Between = "0-99",
    max_sum: MaxSum = None,
    shots: Shots = 0,
    digits: Digits = "single",
    template: TemplateText = None,
    pairs: NPairs = 100,
    vary: Vary = "any",
    wrong_too: WrongToo = False,
    seed: Seed = 0,
    top: Top = 10,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Find a circuit on half of the pairs, and test it on the other half.

    Writes report.html, results.nc and circuit.json (EAP-IG's graph) into DIR and prints how
    faithful it is and its largest edges.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.circuits.instruments.search import find_circuit
        from mechnum.report import circuit_summary, save

        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        drawn, said = drawn_pairs(chosen, loaded, pairs, vary, seed, wrong_too)
        said["command"] = command_line()
        found, results = find_circuit(
            loaded, drawn, edges, method, metric, direction, values, seed, **said
        )
        page, data = save(results, out)
        graph = found.save(out / "circuit.json", loaded.spec)
    to_stdout(circuit_summary(results, top))
    typer.echo(f"\nwritten: {page}, {data} and {graph}")
