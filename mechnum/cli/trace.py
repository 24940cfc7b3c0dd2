"""`mechnum trace`: the whole analysis of one model on one task, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, ModelName, Out, Quiet, Seed
from mechnum.cli.outputs import check_writable
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.tasks import Task


def trace(
    model: ModelName = "adder-gptj",
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="addition or modular_addition:P; without it, what the model was trained on.",
        ),
    ] = None,
    numbers: Annotated[
        str | None, typer.Option(metavar="FIRST-LAST", help="Operands of an addition.")
    ] = None,
    max_sum: Annotated[int | None, typer.Option(help="Largest sum that is asked.")] = None,
    shots: Annotated[int, typer.Option(min=0, help="Solved sums before each prompt.")] = 0,
    digits: Annotated[
        str,
        typer.Option(metavar="MODE", help="single, or last for tokenizers that split numbers."),
    ] = "single",
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of clean and corrupt prompts.")] = 100,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Trace how a model computes, as one HTML page.

    Writes report.html and results.nc into DIR and prints a summary.
    """
    check_writable(out)
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        asked = _task(
            task or loaded.default_task or "addition", numbers, max_sum, shots, digits, seed
        )
        from mechnum import report
        from mechnum.circuits.trace import trace as run

        results = run(loaded, asked, n_pairs=pairs, seed=seed)
        page, _ = report.save(results, out)
    to_stdout(report.trace_summary(results))
    typer.echo(f"\n{page}")


def _task(
    name: str, numbers: str | None, max_sum: int | None, shots: int, digits: str, seed: int
) -> Task:
    from mechnum.tasks import addition, parse
    from mechnum.tasks.numbers import parse_range

    if name == "addition":
        operands = range(100) if numbers is None else parse_range(numbers)
        return addition(operands, max_sum=max_sum, shots=shots, digits=digits, seed=seed)
    if numbers is not None or max_sum is not None or shots or digits != "single":
        raise MechnumError(
            f"--numbers, --max-sum, --shots and --digits are of addition: leave them out for {name}"
        )
    return parse(name)
