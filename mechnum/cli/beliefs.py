"""`mechnum beliefs`: what a net knows of the hidden state of the process that it predicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, Out, Quiet, Seed
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.errors import MechnumError
from mechnum.files import check_writable
from mechnum.progress import working

if TYPE_CHECKING:
    from mechnum.models import Model
    from mechnum.tasks.processes import Process

_OF_PROCESSES = {"name", "alone", "states", "out", "quiet"}
"""Parameters that a process without a net has a use for."""


def beliefs(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="PROCESS|MODEL",
            help="A net, such as the bundled mess3 or a folder, or a process: mess3:0.05,0.85, "
            "rrxor, z1r, golden_mean, even, iid:0.2,0.8, carry:10,0.25 or a .toml file. A name of "
            "both is the net.",
        ),
    ],
    process: Annotated[
        str | None,
        typer.Option(
            metavar="PROCESS", help="What the net predicts, where it does not say so itself."
        ),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="The process itself, without a net of its name.")
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A run of `mechnum train`, or checkpoints named by their steps; by default the "
            "run in the model's own folder.",
        ),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(
            metavar="S,S[,S]",
            help="Two or three hidden states to draw; by default all three, or where beliefs vary.",
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Tokens of the strings; the net's context, if not."),
    ] = None,
    strings: Annotated[
        int, typer.Option(min=10, metavar="N", help="Strings; all of them where there are no more.")
    ] = 5000,
    first: Annotated[
        int | None,
        typer.Option(
            "--from",
            min=0,
            metavar="N",
            help="Position from which on beliefs are read; 0 is all. By default from the first "
            "one that has 10 prefixes; of column addition after the sums' digits.",
        ),
    ] = None,
    position: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Where beliefs are replaced; the middle, if not."),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pairs of histories of the causal test.")
    ] = 200,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Read beliefs about a hidden process from a net's residuals, beside controls.

    Regresses the exact beliefs on each layer, replaces beliefs and looks whether predictions
    follow, and draws the mixed-state tree. A process alone gives its tree and entropies. Writes
    report.html and results.nc into DIR and prints what was found.
    """
    check_writable(out)
    drawn = None if states is None else states.split(",")
    said = {"command": command_line()}
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.circuits.instruments.beliefs import measure_beliefs, measure_process
            from mechnum.report import beliefs_summary, save
            from mechnum.tasks.processes import find_process
            from mechnum.training import history_of
        if alone or _is_process(name):
            _refuse_options_of_nets(context)
            with working(f"beliefs about {name}"):
                found = measure_process(find_process(name), drawn, said)
        else:
            model = load_model(name, device, dtype)
            found = measure_beliefs(
                model,
                _process_of(model, process),
                history=history_of(name, run),
                length=length,
                strings=strings,
                positions=_positions(first, length or model.spec.n_ctx),
                states=drawn,
                position=position,
                n_pairs=pairs,
                seed=seed,
                said=said,
            )
        written = save(found, out)
    to_stdout(beliefs_summary(found))
    typer.echo(f"\nwritten: {written[0]} and {written[1]}")


def _is_process(name: str) -> bool:
    """Whether the name is a process', and none of a bundled net, a net's file or its folder.

    Other folders may well have a process' name, such as the one its page was written into.
    """
    from mechnum.models import bundled
    from mechnum.models.net_file import NET_FILE
    from mechnum.tasks.processes.files import NAMES

    if name in bundled() or any(
        (Path(name) / file).is_file() for file in ("config.json", NET_FILE)
    ):
        return False
    if name.endswith(".toml"):
        return Path(name).name != NET_FILE
    return name.partition(":")[0] in NAMES


def _process_of(model: Model, given: str | None) -> Process:
    """The process that is given, or the one that the net was trained on."""
    from mechnum.tasks.processes import find_process

    text = given or model.default_task
    if text is None:
        raise MechnumError(f"{model.name} does not say what it predicts: name it with --process")
    try:
        return find_process(text)
    except MechnumError as reason:
        if given is not None:
            raise
        raise MechnumError(
            f"{model.name} was trained on {text}, which is no process ({reason}): name one with "
            "--process, or use another net"
        ) from None


def _positions(first: int | None, length: int) -> range | None:
    """All from the first one on; None leaves the choice to the measurement."""
    if first is None:
        return None
    if first >= length:
        raise MechnumError(f"strings of {length} tokens have no position {first}: lower --from")
    return range(first, length)


def _refuse_options_of_nets(context: typer.Context) -> None:
    """A process alone has a tree and entropies, which hardly any option changes."""
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        # By its name, since some versions of Typer bring a Click of their own.
        given = source is not None and source.name == "COMMANDLINE"
        if given and option.name not in _OF_PROCESSES:
            raise MechnumError(f"{option.opts[0]} goes with a net: name one, or leave it out")
