"""`mechnum trace`: the first look at how a model adds, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, Out, Quiet, Seed
from mechnum.cli.outputs import check_writable
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.tasks import Task


def trace(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="A bundled name, smollm2, a Hugging Face id, a folder, a GGUF or net.toml file.",
        ),
    ] = "adder-gptj",
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK", help="addition or modular_addition:P; by default the model's own."
        ),
    ] = None,
    between: Annotated[
        str, typer.Option("--range", metavar="FIRST-LAST", help="The numbers that are added.")
    ] = "0-99",
    max_sum: Annotated[int | None, typer.Option(help="Leave out larger sums.")] = None,
    shots: Annotated[int, typer.Option(min=0, help="Solved sums before each prompt.")] = 0,
    digits: Annotated[
        Literal["single", "last"],
        typer.Option(help="single refuses numbers of several tokens; last reads their last one."),
    ] = "single",
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Pairs of prompts to patch, at most.")
    ] = 100,
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
        from mechnum.circuits.trace import trace as run_trace
        from mechnum.report import save, trace_summary

        name = task or loaded.default_task or "addition"
        chosen = _task(name, between, max_sum, shots, digits, seed)
        results = run_trace(loaded, chosen, n_pairs=pairs, seed=seed)
        page, data = save(results, out)
    to_stdout(trace_summary(results))
    typer.echo(f"\nwritten: {page} and {data}")


def _task(
    name: str,
    between: str,
    max_sum: int | None,
    shots: int,
    digits: Literal["single", "last"],
    seed: int,
) -> Task:
    """The task with the options of addition, where it is addition."""
    from mechnum.tasks import addition, parse
    from mechnum.tasks.numbers import parse_range

    if name == "addition":
        return addition(parse_range(between), max_sum, shots, digits, seed=seed)
    if (between, max_sum, shots, digits) != ("0-99", None, 0, "single"):
        raise MechnumError(
            f"--range, --max-sum, --shots and --digits do not go with {name}: "
            "use them with --task addition"
        )
    return parse(name)
