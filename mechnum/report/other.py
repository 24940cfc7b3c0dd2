"""The page of results that no other page knows, such as those of another package's instrument."""

from __future__ import annotations

import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Block, Caption, Facts, Table, Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.provenance import provenance_section

_MOST_CELLS = 1_000_000


def other_page(results: xr.DataTree) -> Page:
    """Every group as a section: its single values, and a table for variables over the same dims.

    A group's attributes `estimand`, `interval` and `null` go into its captions.
    """
    sections = [
        Section(node.path.strip("/") or "Results", _blocks(node.to_dataset(inherit=False)))
        for node in results.subtree
        if node.data_vars
    ]
    title = str(results.attrs.get("title", f"Results of {results.attrs.get('model', 'a model')}"))
    left_out = reading.left_out(results)
    found = [Section("What was found", [Text(points=left_out)])] if left_out else []
    return Page(title=title, sections=[*found, *sections, provenance_section(results)])


def _blocks(dataset: xr.Dataset) -> list[Block]:
    by_dims: dict[tuple[str, ...], list[str]] = {}
    for name, variable in dataset.data_vars.items():
        by_dims.setdefault(tuple(map(str, variable.dims)), []).append(str(name))
    single = by_dims.pop((), [])
    rows = [(name, _value(dataset[name].item())) for name in single]
    for dims, names in list(by_dims.items()):
        if dataset[names[0]].size * len(names) > _MOST_CELLS:
            shape = " × ".join(f"{dataset.sizes[dim]:,} {dim}" for dim in dims)
            rows += [(name, f"{shape}: in results.nc alone") for name in names]
            del by_dims[dims]
    facts: list[Block] = [Facts(rows)] if rows else []
    return facts + [_table(dataset, names, dims) for dims, names in by_dims.items()]


def _value(value: object) -> str:
    return words.number(value) if isinstance(value, float) else str(value)


def _table(dataset: xr.Dataset, names: list[str], dims: tuple[str, ...]) -> Table:
    # Coordinates over other dims would be repeated in each row.
    chosen = dataset[names]
    frame = chosen.drop_vars(set(chosen.coords) - set(dims)).to_dataframe().reset_index()
    return Table(
        title=words.sentence(words.listed(names)),
        frame=frame[[*dims, *names]],
        caption=Caption(
            text=f"Values over {words.listed(dims)}.",
            estimand=_said(dataset, "estimand"),
            n=", ".join(f"{dataset.sizes[dim]:,} {dim}" for dim in dims),
            interval=_said(dataset, "interval"),
            null=_said(dataset, "null"),
        ),
    )


def _said(dataset: xr.Dataset, name: str) -> str:
    return str(dataset.attrs.get(name, "these results do not say"))
