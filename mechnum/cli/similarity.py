"""`mechnum similarity`: do models hold numbers alike?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.options import Device, Dtype, Out, Quiet, Seed
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.files import check_writable
from mechnum.progress import working

_PLACE = re.compile(r"(.+)@(embedding|unembedding|\d+)")


def similarity(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL[@PLACE]...",
            help="A model as other commands take it, minilm or a folder of an encoder. After @ the "
            "place that stands for its numbers: embedding, unembedding or a layer, as in "
            "smollm2@8.",
        ),
    ],
    between: Annotated[
        str,
        typer.Option(
            "--range",
            metavar="FIRST-LAST",
            help="Numbers to choose from: the longest run that all models read is compared.",
        ),
    ] = "0-199",
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What is read, with {n} for the number; by default {n}, or 'The number is {n}' "
            "where numbers are not one token.",
        ),
    ] = None,
    frequencies: Annotated[
        int, typer.Option(min=1, metavar="N", help="Strongest frequencies that are compared.")
    ] = 31,
    draws: Annotated[int, typer.Option(min=19, help="Draws of each null.")] = 99,
    transfer: Annotated[bool, typer.Option(help="Read probes of each model on the others.")] = True,
    seed: Seed = 0,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Compare how models hold numbers: each pair, or the places of one model.

    Similarities of all pairs of numbers, CKA and spectra, each beside random words, shuffled and
    Gaussian rows; probes of one model read on another. Writes report.html and results.nc into DIR
    and prints the pairs.
    """
    check_writable(out)
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.circuits.instruments.similarity import Chosen, measure_similarity
            from mechnum.models import load_model_or_table
            from mechnum.report import save, similarity_summary
            from mechnum.tasks.numbers import parse_range
        numbers = parse_range(between)
        places = [_split(text) for text in models]
        loaded = {}
        for name in dict.fromkeys(name for name, _ in places):
            with working(f"loading {name}"):
                loaded[name] = load_model_or_table(name, device, dtype)
        found = measure_similarity(
            [Chosen(loaded[name], place) for name, place in places],
            numbers,
            template,
            frequencies,
            draws=draws,
            transfer=transfer,
            seed=seed,
            said={"command": command_line()},
        )
        written = save(found, out)
    to_stdout(similarity_summary(found))
    typer.echo(f"\nwritten: {written[0]} and {written[1]}")


def _split(text: str) -> tuple[str, str | None]:
    """`smollm2@8` → the model and its place; names with another @ are names."""
    match = _PLACE.fullmatch(text)
    if match is None:
        return text, None
    name, place = match.groups()
    return name, f"layer {place}" if place.isdecimal() else place
