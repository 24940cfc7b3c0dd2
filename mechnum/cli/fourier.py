"""`mechnum fourier`: how a model's numbers look in Fourier space, and what of it can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Digits, Dtype, ModelName, Out, Quiet, Seed, Top
from mechnum.cli.outputs import command_line
from mechnum.cli.progress import bars
from mechnum.cli.tables import to_stdout
from mechnum.cli.tasks import numbers_in
from mechnum.files import check_writable


def fourier(
    model: ModelName,
    between: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="FIRST-LAST",
            help="The numbers, without holes: 0-99, or all of a modular net.",
        ),
    ] = None,
    of: Annotated[
        Literal[
            "embedding", "unembedding", "resid", "resid_mid", "attn_out", "mlp_out", "mlp_hidden"
        ],
        typer.Option(help="Whose rows: a matrix, or what each layer holds at the number."),
    ] = "resid",
    template: Annotated[
        str, typer.Option(metavar="TEXT", help="What is read, with {n} for the number.")
    ] = "{n}",
    digits: Digits = "single",
    periods: Annotated[
        str | None,
        typer.Option(metavar="T,T,...", help="Periods of the waves that are fitted: 2,5,10,100."),
    ] = None,
    moduli: Annotated[
        str | None,
        typer.Option(metavar="T,T,...", help="Residues n mod T that are probed: 2 to 10 and more."),
    ] = None,
    null: Annotated[
        Literal["shuffled", "gaussian"],
        typer.Option(help="Chance: rows in random order, or Gaussian rows of equal covariance."),
    ] = "shuffled",
    draws: Annotated[int, typer.Option(min=19, help="Spectra of chance.")] = 1000,
    permutations: Annotated[
        int, typer.Option(min=19, help="Permutations of the residues, for their p-values.")
    ] = 200,
    counts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of number,count: the spectrum of a text's numbers."),
    ] = None,
    seed: Seed = 0,
    top: Top = 10,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Measure the spectrum of numbers in a model, and which residues can be read.

    Writes report.html and results.nc into DIR and prints the strongest frequencies, with how often
    chance makes them as strong.
    """
    check_writable(out)
    with bars(quiet):
        from mechnum.tasks.numbers import parse_range

        chosen = None if between is None else parse_range(between)
        waves = None if periods is None else numbers_in(periods, "--periods")
        residues = None if moduli is None else numbers_in(moduli, "--moduli", int)
        loaded = load_model(model, device, dtype)
        from mechnum.fourier import number_spectra, token_counts
        from mechnum.report import save, spectra_summary
        from mechnum.tasks.single_numbers import own_numbers

        found = number_spectra(
            loaded,
            own_numbers(loaded) if chosen is None else chosen,
            of,
            template,
            digits,
            waves,
            residues,
            null,
            draws,
            permutations,
            None if counts is None else token_counts(counts),
            seed,
            command=command_line(),
        )
        page, data = save(found, out)
    to_stdout(spectra_summary(found, top))
    typer.echo(f"\nwritten: {page} and {data}")
