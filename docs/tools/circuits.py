"""The pages of the published circuits: what each is, and every figure that its paper reports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mechnum.circuits.running.catalogue import CircuitFolder, circuits
from mechnum.circuits.running.published import Published, PublishedFigure


def circuit_pages() -> dict[str, str]:
    """The path of each page, and its Markdown."""
    return {f"circuits/{name}.md": "\n".join(_page(circuit)) for name, circuit in own().items()}


def own() -> dict[str, CircuitFolder]:
    """The circuits of this package, by name."""
    return {
        name: circuit
        for name, circuit in circuits().items()
        if circuit.package.startswith("mechnum.")
    }


def cell(text: str) -> str:
    """Text that Markdown leaves alone within a table."""
    return re.sub(r"([|*_<>\[\]`\\])", r"\\\1", text)


def _page(circuit: CircuitFolder) -> Iterator[str]:
    published = circuit.published
    text = (circuit.folder / "README.md").read_text(encoding="utf-8")
    yield text.replace("in `docs/costs.md`", "in [what a recipe costs](../costs.md)")
    yield f"## The {len(published.figures)} published figures\n"
    yield (
        f"{published.source}. Where no step is named, the figure is of a quantity that no step "
        "measures, and the report says so.\n"
    )
    yield "| figure | published | model | place | step | note |"
    yield "|---|---|---|---|---|---|"
    for figure in published.figures:
        yield f"| {' | '.join(cell(part) for part in _row(figure, published))} |"


def _row(figure: PublishedFigure, published: Published) -> list[str]:
    model = published.models[figure.model].name
    steps = ", ".join(figure.steps)
    return [figure.name, _value(figure), model, figure.place, steps, figure.note]


def _value(figure: PublishedFigure) -> str:
    match figure.value, figure.lower, figure.upper:
        case (float(value), _, _):
            found = f"{value:g}"
        case (_, None, upper):
            found = f"≤ {upper:g}"
        case (_, lower, None):
            found = f"≥ {lower:g}"
        case (_, lower, upper):
            found = f"{lower:g} to {upper:g}"
    return f"{found} {figure.unit}".rstrip()
