"""`mechnum patch`: what each node does for the answer."""

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
    MeanOver,
    Metric,
    ModelName,
    Norm,
    NPairs,
    Out,
    Position,
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
from mechnum.cli.tasks import chosen_task, drawn_pairs, position_of
from mechnum.files import check_writable


def patch(
    model: ModelName,
    nodes: Annotated[
        str,
        typer.Option(
            metavar="NODES",
            help="heads, attn, mlps, neurons, q, k, v, kv, pattern or residual; or a list such "
            "as 'head 2.1, mlp 0-3, head 0.0 + head 0.1'.",
        ),
    ] = "heads",
    position: Position = "end",
    estimand: Annotated[
        Literal["total", "direct", "both"], typer.Option(help="Which effects to measure.")
    ] = "both",
    metric: Metric = "logit_diff",
    norm: Norm = "exact",
    direction: Direction = "denoise",
    values: PutIn = "other",
    mean_over: MeanOver = "position",
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
    """Measure the total, direct and indirect effect of nodes by patching.

    Writes report.html and results.nc into DIR and prints the largest effects.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.patching import effects
        from mechnum.patching.selection import select
        from mechnum.patching.tree import results
        from mechnum.report import ranking, save

        # Refused before all prompts are run, which can take minutes.
        select(nodes, loaded.spec)
        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        drawn, said = drawn_pairs(chosen, loaded, pairs, vary, seed, wrong_too)
        measured = effects(
            loaded,
            drawn,
            nodes,
            position=position_of(position),
            metric=metric,
            norm=norm,
            direction=direction,
            values=values,
            estimands=("total", "direct") if estimand == "both" else (estimand,),
            mean_over=mean_over,
            seed=seed,
        )
        found = results(loaded, drawn, measured, seed, **said, command=command_line())
        page, data = save(found, out)
    to_stdout(ranking(found, top))
    typer.echo(f"\nwritten: {page} and {data}")
