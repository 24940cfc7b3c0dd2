"""The figures that papers published, beside what was measured here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from mechnum.circuits.running.catalogue import CircuitFolder, find_circuit
from mechnum.circuits.running.published import KINDS, Kind, PaperModel, PublishedFigure
from mechnum.errors import MechnumError
from mechnum.models import Model, TokenTable
from mechnum.toml_files import unknown

_Measured = tuple[Model | TokenTable, xr.DataTree]


def beside_the_paper(
    circuit: CircuitFolder, model: Model | TokenTable, steps: Mapping[str, _Measured]
) -> xr.Dataset:
    """Every published figure of a circuit, and the same of this model where it was measured.

    Args:
        model: that the circuit is run on.
        steps: the model that each step measured, and its results, by name.

    Returns:
        Over figure, with the coordinate `quantity`: `published` or else `lower` and `upper` (NaN
        where there is none), `measured` (NaN where it is not), `within` ("yes" or "no" for the
        paper's own model, else ""), `paper_model`, `model`, `kind` (one of `KINDS`), `needs` (what
        a figure that is not measured needs), `unit`, `place` and `note`. Attribute: `source`.

    Raises:
        MechnumError: where a reading is missing.
    """
    rows = [_row(circuit, figure, model, steps) for figure in circuit.published.figures]
    columns = {name: [row[name] for row in rows] for name in _COLUMNS}
    dataset = xr.Dataset({name: ("figure", values) for name, values in columns.items()})
    return dataset.set_coords("quantity").assign_attrs(source=circuit.published.source)


_COLUMNS = ("quantity", "published", "lower", "upper", "measured", "unit", "within",
            "paper_model", "model", "kind", "needs", "place", "note")  # fmt: skip


def with_published(
    results: xr.DataTree, circuit: str, step: str, model: Model | TokenTable
) -> xr.DataTree:
    """One step's results with the group `/published`, where a figure is read from them.

    It has the figures of the models that any is read for, as `beside_the_paper` gives them.
    """
    found = find_circuit(circuit)
    rows = beside_the_paper(found, model, {step: (model, results)})
    read_here = np.array([step in figure.steps for figure in found.published.figures], dtype=bool)
    measured = rows["measured"].notnull().values
    of_models = np.isin(rows["paper_model"].values, rows["paper_model"].values[measured])
    if not measured.any():
        return results
    kept = rows.isel(figure=np.flatnonzero(read_here & of_models))
    return results.assign({"published": xr.DataTree(kept)})


def published_figure(circuit: str, name: str) -> PublishedFigure:
    """The first figure of that name which a circuit's paper reports.

    Raises:
        MechnumError: there is none.
    """
    figures = find_circuit(circuit).published.figures
    for figure in figures:
        if figure.name == name:
            return figure
    raise MechnumError(unknown("figure", name, [figure.name for figure in figures]))


def _row(
    circuit: CircuitFolder,
    figure: PublishedFigure,
    model: Model | TokenTable,
    steps: Mapping[str, _Measured],
) -> dict[str, Any]:
    paper = circuit.published.models[figure.model]
    model, results = _nearest(figure, paper, model, steps)
    kind = paper.kinship(model)
    measured, needs = np.nan, _needed(figure, paper, kind)
    if results is not None and paper.is_measured_on(kind):
        if lacks := figure.lacks(results.attrs):
            needs = lacks
        else:
            measured = circuit.read(figure, results)
    value, lower, upper = (
        np.nan if end is None else end for end in (figure.value, figure.lower, figure.upper)
    )
    return {
        "quantity": figure.name,
        "published": value,
        "lower": lower,
        "upper": upper,
        "measured": measured,
        "unit": figure.unit,
        "within": figure.within(measured) if kind == KINDS[0] else "",
        "paper_model": paper.name,
        "model": model.name,
        "kind": kind,
        "needs": "" if np.isfinite(measured) else needs,
        "place": figure.place,
        "note": figure.note,
    }


def _nearest(
    figure: PublishedFigure,
    paper: PaperModel,
    model: Model | TokenTable,
    steps: Mapping[str, _Measured],
) -> tuple[Model | TokenTable, xr.DataTree | None]:
    """Of the steps that a figure can be read from, the one whose model is nearest to the paper's;
    the run's model and no results where there is none."""
    there = [steps[step] for step in figure.steps if step in steps]
    if not there:
        return model, None
    return min(there, key=lambda step: KINDS.index(paper.kinship(step[0])))


def _needed(figure: PublishedFigure, paper: PaperModel, kind: Kind) -> str:
    """What a figure that these results do not give needs: the paper's model, a step that there is
    not, or both; on the paper's own model another setting of its steps."""
    if figure.reading is None:
        return "a step for it" if kind == KINDS[0] else f"{paper.name} and a step for it"
    return "other settings" if kind == KINDS[0] else paper.name
