"""The summary of a trace on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from mechnum.report import findings, reading, words
from mechnum.report.frames import node_names, ranked

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_TOP = {"heads": 5, "attn": 3, "mlps": 3}


def summary_frame(results: xr.DataTree) -> pd.DataFrame:
    """The nodes with the largest effects of each kind, as a table.

    Columns: `kind`, `node`, and for total and direct effect the mean over pairs and the ends of
    its 95 % interval (`total`, `total_low`, `total_high`, ...). Ranked by the absolute total
    effect, or by the direct one where there is no total.
    """
    rows = []
    for kind, frame in findings.effect_frames(results).items():
        top = ranked(frame, "total" if "total" in frame else "direct", _TOP[kind])
        named = top.assign(kind=findings.KINDS[kind], node=node_names(top, kind))
        rows.append(named)
    ends = [f"{effect}{end}" for effect in ("total", "direct") for end in ("", "_low", "_high")]
    wanted = ["kind", "node", *ends]
    if not rows:
        return pd.DataFrame(columns=pd.Index(wanted))
    frame = pd.concat(rows, ignore_index=True)
    return frame[[name for name in wanted if name in frame]]


def trace_summary(results: xr.DataTree) -> Group:
    """What `mechnum trace` prints: accuracy, largest effects and the helix, for a Rich console."""
    from rich.console import Group
    from rich.text import Text

    parts = []
    head = " · ".join(str(results.attrs[key]) for key in ("model", "task") if key in results.attrs)
    if head:
        parts.append(Text(head, style="bold"))
    accuracy = findings.accuracy_sentence(results)
    if accuracy:
        parts.append(Text(accuracy))
    effects = summary_frame(results)
    if len(effects):
        parts.append(_effects_table(effects, results))
    helix = findings.best_helix(findings.site_frames(results))
    if len(helix):
        parts.append(_helix_table(helix))
    parts += [Text(f"{name}: {why}") for name, why in reading.left_out(results)]
    return Group(*parts)


def _effects_table(frame: pd.DataFrame, results: xr.DataTree) -> Table:
    table = bare_table()
    table.add_column("")
    table.add_column("node")
    effects = [effect for effect in ("total", "direct") if effect in frame]
    for effect in effects:
        table.add_column(f"{effect} effect", justify="right", no_wrap=True)
    for kind, rows in frame.groupby("kind", sort=False):
        table.add_section()
        for index, (_, row) in enumerate(rows.iterrows()):
            cells = [
                words.interval(row[effect], row[f"{effect}_low"], row[f"{effect}_high"])
                for effect in effects
            ]
            table.add_row(str(kind) if index == 0 else "", row["node"], *cells)
    dataset = next(
        dataset
        for kind in findings.KINDS
        if (dataset := reading.group(results, f"effects/{kind}")) is not None
    )
    attrs = reading.attributes(results, dataset)
    table.caption = (
        f"Mean change of {words.metric(attrs)} over {dataset.sizes['pair']} pairs [95 % interval]"
    )
    return table


def _helix_table(helix: pd.DataFrame) -> Table:
    table = bare_table()
    table.add_column("Helix at")
    table.add_column("layer", justify="right", no_wrap=True)
    table.add_column("R²", justify="right", no_wrap=True)
    table.add_column("causal score", justify="right", no_wrap=True)
    table.add_column("full state", justify="right", no_wrap=True)
    for row in helix.to_dict("records"):
        score = "" if pd.isna(row.get("score")) else words.interval(
            row["score"], row["score_low"], row["score_high"]
        )  # fmt: skip
        table.add_row(
            str(row["site"]),
            "embedding" if row["layer"] == -1 else str(int(row["layer"])),
            "" if pd.isna(row.get("r2")) else words.number(row["r2"]),
            score,
            "" if pd.isna(row.get("full_score")) else words.number(row["full_score"], sign=True),
        )
    table.caption = "The layer where the helix's causal score is largest"
    return table


def bare_table() -> Table:
    """A table with a line under its head."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, caption_justify="left", pad_edge=False)
