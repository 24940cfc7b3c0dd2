"""`mechnum run` and `mechnum circuits`: published circuits, from one command to one report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, Out, Quiet
from mechnum.cli.progress import bars
from mechnum.cli.tables import print_table, to_stdout
from mechnum.errors import MechnumError
from mechnum.files import check_writable
from mechnum.progress import working


def run(
    circuit: Annotated[
        str, typer.Argument(metavar="CIRCUIT", help="A circuit; mechnum circuits lists them.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A bundled name, smollm2, a Hugging Face id, a folder, a GGUF or net.toml file; "
            "by default the circuit's own.",
        ),
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the run (task, seed, n_pairs) or of a step (steps.NAME.KEY); may be "
            "given several times.",
        ),
    ] = None,
    out: Out = Path("report"),
    device: Device = None,
    dtype: Dtype = None,
    quiet: Quiet = False,
) -> None:
    """Run a published circuit, and set its figures beside those of the paper.

    The results of steps are kept in DIR/steps: the same command goes on where it was stopped, and a
    changed setting measures only what depends on it. Writes report.html, results.nc, and
    circuit.json where a step finds a circuit, into DIR.
    """
    from mechnum.circuits.running.catalogue import find_circuit

    check_writable(out)
    settings = _settings(changed or [])
    # A slip in the name is said before the seconds that the libraries take to load.
    named = find_circuit(circuit)
    with bars(quiet):
        with working("loading the libraries"):
            from mechnum.circuits.running.run import prepared
            from mechnum.report import run_summary
        ready = prepared(named, settings)
        loaded = load_model(model or ready.recipe.model, device, dtype)
        try:
            found = ready.on(loaded, out)
        except KeyboardInterrupt:
            typer.echo("stopped: the same command goes on with the step that was running", err=True)
            raise
        written = found.save(out)
    to_stdout(run_summary(found.results, found.page))
    typer.echo(f"\nwritten: {', '.join(map(str, written[:-1]))} and {written[-1]}")


def circuits() -> None:
    """List the published circuits: what mechnum run can run."""
    from mechnum.circuits.running.catalogue import circuits as known

    recipes = {name: folder.recipe for name, folder in known().items()}
    print_table(
        ("circuit", "model", "steps", "about", "paper"),
        [
            (name, of.model, ", ".join(step.name for step in of.steps), of.title, of.paper)
            for name, of in recipes.items()
        ],
    )


def _settings(given: list[str]) -> dict[str, Any]:
    """`key=value` as a mapping; values as TOML has them, or texts.

    Raises:
        MechnumError: one is something else, or is there twice.
    """
    from mechnum.toml_files import toml_value

    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise MechnumError(f"--set {text!r} is no setting: write KEY=VALUE, as n_pairs=50")
        if name in found:
            raise MechnumError(f"--set {name} is there twice: give it once")
        found[name] = toml_value(value.strip())
    return found
