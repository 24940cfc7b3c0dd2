"""`mechnum paths`: what senders do through the receivers that read them."""

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
from mechnum.errors import MechnumError
from mechnum.files import check_writable


def paths(
    model: ModelName,
    senders: Annotated[
        str,
        typer.Option(
            metavar="NODES",
            help="heads, mlps or another table of `mechnum patch`, embed, components (embedding, "
            "heads and MLPs); or a list such as 'head 0.*, mlp 2'.",
        ),
    ] = "heads",
    receivers: Annotated[
        str,
        typer.Option(
            metavar="NODES",
            help="q, k, v, mlp_in, neuron_in, logits, components (all but neurons); or a list "
            "such as 'q 2.*, v 3.g1'.",
        ),
    ] = "q",
    variant: Annotated[
        Literal["edge", "path"],
        typer.Option(
            help="edge changes the receiver's input alone; path reads the receiver in a run with "
            "the sender patched."
        ),
    ] = "edge",
    freeze: Annotated[
        Literal["both", "attn", "mlps", "none"],
        typer.Option(help="What a path keeps at its unpatched values between the two."),
    ] = "both",
    norm: Norm = "exact",
    position: Position = "all",
    metric: Metric = "logit_diff",
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
    """Measure the effect of every sender through every receiver by path patching.

    Writes report.html and results.nc into DIR and prints the largest effects.
    """
    if variant == "edge" and freeze != "both":
        raise MechnumError(
            f"--freeze {freeze} does not go with edges, which pass through nothing: "
            "use --variant path"
        )
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.patching import path_effects
        from mechnum.patching.path.targets import receivers_named, senders_named
        from mechnum.patching.tree import results
        from mechnum.report import ranking, save

        # Refused before all prompts are run, which can take minutes.
        senders_named(senders, loaded.spec)
        receivers_named(receivers, loaded.spec)
        chosen = chosen_task(loaded, task, between, max_sum, shots, digits, template, seed)
        drawn, said = drawn_pairs(chosen, loaded, pairs, vary, seed, wrong_too)
        measured = path_effects(
            loaded,
            drawn,
            senders,
            receivers,
            variant=variant,
            frozen={"both": ("attn", "mlps"), "none": ()}.get(freeze, (freeze,)),
            norm=norm,
            position=position_of(position),
            metric=metric,
            direction=direction,
            values=values,
            mean_over=mean_over,
            seed=seed,
        )
        said |= {"senders": senders, "receivers": receivers, "command": command_line()}
        found = results(loaded, drawn, measured, seed, **said)
        page, data = save(found, out)
    to_stdout(ranking(found, top))
    typer.echo(f"\nwritten: {page} and {data}")
