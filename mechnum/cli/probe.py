"""`mechnum probe`: what is read of numbers at each layer of a model, and what it means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import (
    Device,
    Dtype,
    MaxSum,
    ModelName,
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
from mechnum.errors import MechnumError
from mechnum.files import check_writable

if TYPE_CHECKING:
    from mechnum.models import Model
    from mechnum.tasks.contexts import Context


_OF_TEXTS = ("context", "texts", "key", "per_number", "piece", "probes", "steps")
_OF_TASKS = ("task", "max_sum", "shots", "template", "prompts")


def probe(
    given: typer.Context,
    model: ModelName,
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Texts that numbers stand in: arithmetic, cooking, finance, medicine or time; "
            "again for more. All five by default.",
        ),
    ] = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Texts of your own, one a line, or .jsonl; again for more."
        ),
    ] = None,
    key: Annotated[
        str, typer.Option(metavar="KEY", help="The text in each line of .jsonl.")
    ] = "text",
    between: Annotated[
        str,
        typer.Option(
            "--range", metavar="FIRST-LAST", help="The numbers; 0-999 in texts, 0-99 in tasks."
        ),
    ] = "",
    per_number: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often each number stands in the texts.")
    ] = 4,
    piece: Annotated[
        int,
        typer.Option(
            metavar="N", help="Token of a number that is read at: -1 the last, 0 the first."
        ),
    ] = -1,
    layers: Annotated[
        str,
        typer.Option(
            metavar="L,L,...",
            help="Layers, -1 the embedding, or all; by default 8 at equal distances.",
        ),
    ] = "",
    probes: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="Of linear, log, binary, sin, param-sin, fourier and digits; all by default.",
        ),
    ] = "",
    steps: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of probes that are trained by gradients.")
    ] = 600,
    task: TaskName = None,
    max_sum: MaxSum = None,
    shots: Shots = 0,
    template: TemplateText = None,
    prompts: Annotated[
        int, typer.Option(min=50, metavar="N", help="Prompts of a task that are drawn, at most.")
    ] = 2000,
    ordinals: Annotated[
        bool, typer.Option("--ordinals", help="Read weekdays, months and number words instead.")
    ] = False,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Read numbers from states with every probe, beside lenses and controls.

    Of language models numbers in texts, with numbers and templates held out; of a model with a task
    its operands and answer at each position. States are kept in DIR/states and found again. Writes
    report.html and results.nc into DIR and prints what was found.
    """
    check_writable(out)
    in_texts = bool(context or texts)
    if ordinals:
        _refuse(given, "--ordinals", {*_OF_TEXTS, *_OF_TASKS, "between"})
    elif task is not None:
        _refuse(given, "--task", _OF_TEXTS)
    elif in_texts:
        _refuse(given, "texts", _OF_TASKS)
    with bars(quiet):
        from mechnum.tasks.numbers import parse_range

        # What is wrong with these is said before a model takes its time to load.
        numbers = parse_range(between or "0-999")
        contexts = [] if ordinals or task is not None else _contexts(context, texts, key)
        loaded = load_model(model, device, dtype)
        from mechnum.report import probe_summary, save

        common: dict[str, Any] = {
            "layers": _layers(layers, loaded),
            "seed": seed,
            "said": {"command": command_line()},
        }
        if ordinals:
            from mechnum.circuits.instruments.probe_ordinals import measure_ordinals

            found = measure_ordinals(loaded, folder=out / "states", **common)
        elif task is not None or (loaded.default_task is not None and not in_texts):
            _refuse(given, f"the task of {loaded.name}", _OF_TEXTS)
            from mechnum.circuits.instruments.probe_task import measure_task

            chosen = chosen_task(
                loaded, task, between or "0-99", max_sum, shots, "single", template, seed
            )
            found = measure_task(loaded, chosen, prompts, **common)
        else:
            _refuse(given, f"texts, which {loaded.name} reads without --task", _OF_TASKS)
            from mechnum.circuits.instruments.probe import PROBES, measure_numbers
            from mechnum.tasks.contexts import context_prompts

            drawn = context_prompts(loaded, contexts, numbers, per_number, seed, piece)
            names = probes.split(",") if probes else PROBES
            found = measure_numbers(
                loaded, drawn, probes=names, steps=steps, folder=out / "states", **common
            )
        written = save(found, out)
    to_stdout(probe_summary(found))
    typer.echo(f"\nwritten: {written[0]} and {written[1]}")


def _layers(text: str, model: Model) -> list[int] | None:
    """`-1,4,8` or `all`.

    Raises:
        MechnumError: it is something else.
    """
    if not text:
        return None
    if text == "all":
        return list(range(-1, model.spec.n_layers))
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise MechnumError(
            f"--layers {text!r} is no list of layers: write it like -1,4,8"
        ) from None


def _contexts(names: list[str] | None, files: list[Path] | None, key: str) -> list[str | Context]:
    from mechnum.tasks.contexts import CONTEXTS, read_texts

    own = [read_texts(file, key=key) for file in files or []]
    return [*(names or ([] if own else CONTEXTS)), *own]


def _refuse(context: typer.Context, what: str, options: Iterable[str]) -> None:
    """Refuse options that would change nothing.

    Raises:
        MechnumError: one of them is on the command line.
    """
    for option in context.command.params:
        if option.name not in options:
            continue
        source = context.get_parameter_source(option.name)
        if source is not None and source.name == "COMMANDLINE":
            raise MechnumError(
                f"{option.opts[0]} does not go with {what}: leave one of the two out"
            )
