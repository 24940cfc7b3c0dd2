"""The strongest frequencies, and the residues that can be read, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from mechnum.report import reading, spectra, words
from mechnum.report.sections.spectra import chance, residue_words, rows_of
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


def spectra_summary(results: xr.DataTree, top: int = 10) -> Group:
    """The `top` frequencies by share with p-values and κ, for a Rich console."""
    from rich.console import Group
    from rich.text import Text

    attrs = reading.attributes(results)
    frame = spectra.strongest_frame(results)
    table = bare_table()
    for name in ("T", "k", "share", "p", "p family", "κ of n mod T", "p of κ"):
        table.add_column(name, justify="right", no_wrap=True)
    layered = "layer" in frame
    if layered:
        table.add_column("largest", no_wrap=True)
    for row in frame.head(top).to_dict("records"):
        unread = pd.isna(row["kappa"])
        cells = [
            words.number(float(row["period"]), 4),
            str(int(row["frequency"])),
            words.percent(float(row["share"])),
            words.q_value(float(row["p"])),
            words.q_value(float(row["p_family"])),
            "" if unread else words.fixed(float(row["kappa"]), 2),
            "" if unread else words.q_value(float(row["kappa_p"])),
        ]
        if layered:
            cells.append(spectra.row_name(attrs, row["layer"]))
        table.add_row(*cells)
    table.caption = (
        f"The {min(top, len(frame)):,} strongest of {len(frame):,} frequencies over "
        f"{rows_of(attrs)}; the constant is left out.\n"
        f"p: {chance(attrs)}; p family: by the largest share of any frequency. κ: held-out "
        "numbers, for whole T."
    )
    title = words.sentence(spectra.title_of(attrs))
    return Group(Text(title, style="bold"), Text(residue_words(results)), table)
