"""`mechnum numbers`: which integers are one token of a model's tokenizer."""

from __future__ import annotations

from typing import Annotated

import typer

from mechnum.cli.loading import load_tokenizer
from mechnum.cli.options import ModelName, Quiet
from mechnum.cli.progress import bars
from mechnum.cli.tables import print_table


def numbers(
    model: ModelName,
    between: Annotated[
        str, typer.Option("--range", metavar="FIRST-LAST", help="The integers, both ends included.")
    ] = "0-999",
    prefix: Annotated[str, typer.Option(help="Text before a number in context.")] = "1+1=",
    suffix: Annotated[str, typer.Option(help="Text after it.")] = "",
    every: Annotated[bool, typer.Option("--every", help="One line for each number.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show which integers are one token.

    Counted for a number alone, after a space, and in context.
    """
    from mechnum.tasks.numbers import PLACES, NumberTokens, parse_range, some

    integers = parse_range(between)
    with bars(quiet):
        tokenizer = load_tokenizer(model)
    found = NumberTokens.of(tokenizer, integers, prefix, suffix, owner=model)
    if every:
        columns = zip(found.numbers, *(getattr(found, place) for place in PLACES), strict=True)
        print_table(
            ("number", *PLACES),
            [(str(number), *(" ".join(map(str, ids)) for ids in row)) for number, *row in columns],
        )
        return
    behind = f" before {suffix!r}" if suffix else ""
    labels = ("bare", "after a space", f"after {prefix!r}{behind}")
    print_table(
        ("place", "one token", "of", "not one token"),
        [
            (
                label,
                str(len(found.single(place))),
                str(len(found.numbers)),
                some(found.offending(place)),
            )
            for label, place in zip(labels, PLACES, strict=True)
        ],
    )
    if changed := [n for n, kept in zip(found.numbers, found.continues, strict=True) if not kept]:
        typer.echo(f"not a continuation of {prefix!r}, whose tokens change: {some(changed)}")
