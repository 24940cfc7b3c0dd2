"""What a paper published of its model, beside the same of this one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Caption, Table
from mechnum.report.page import Section

SAME = "the same model"
"""The kind of model of which a figure can be reproduced."""


def published_section(results: xr.DataTree) -> Section | None:
    """The figures in `/published`, as `mechnum.circuits` compares them.

    Over figure: `quantity`, `published` or `lower` and `upper`, `measured`, `within`,
    `paper_model`, `model`, `kind`, `needs`, `unit`, `place` and `note`; the attribute `source`.
    """
    found = reading.group(results, "published")
    if found is None:
        return None
    table = Table(
        title="Published beside measured",
        frame=published_frame(found),
        caption=Caption(
            text=f"Published: {found.attrs['source']}. {_caution(found)} A figure that is not "
            "measured here says what it needs: the paper's model, a setting, or a step that this "
            "circuit does not have.",
            estimand="as the paper defines each quantity, at the place that the table names; "
            "where that is not all, the note says what is measured here",
            n="that of the section that measures the quantity",
            interval="none: papers give single values; the sections that measure have intervals",
            null="the published value, where the model is the paper's own; for others there is "
            "none, and their sections say what the quantity is to be compared with",
        ),
    )
    return Section("Published figures", [table], published_words(found))


def published_frame(found: xr.Dataset) -> pd.DataFrame:
    """The rows of the table, as the paper orders them."""
    rows = found.reset_coords().to_dataframe()
    return pd.DataFrame(
        {
            "quantity": rows["quantity"],
            "published": [_published(row) for row in rows.to_dict("records")],
            "measured": rows["measured"]
            .astype(object)
            .where(rows["needs"] == "", "needs " + rows["needs"]),
            "this model": rows["model"],
            "same kind": rows["kind"],
            "tolerance met": rows["within"],
            "paper's model": rows["paper_model"],
            "unit": rows["unit"],
            "place": rows["place"],
            "note": rows["note"],
        }
    )


def published_words(found: xr.Dataset) -> str:
    """How many figures are measured, and on which kind of model, in a sentence or two."""
    measured = found["needs"].values == ""
    same = measured & (found["kind"].values == SAME)
    within = found["within"].values[same]
    sentence = _how_many(int(measured.sum()), len(measured))
    if not same.any():
        return f"{sentence}, none of them on the paper's own model."
    judged = int((within != "").sum())
    met = int((within == "yes").sum())
    return (
        f"{sentence}, {int(same.sum())} of them on the paper's own model: {met} of {judged} with "
        "a tolerance are within it."
    )


def _how_many(measured: int, n: int) -> str:
    if n == 1:
        return f"The paper's one figure is {'' if measured else 'not '}measured here"
    if measured == n:
        return f"All {n} of the paper's figures are measured here"
    verb = "is" if measured == 1 else "are"
    return f"{measured} of the paper's {n} figures {verb} measured here"


def _caution(found: xr.Dataset) -> str:
    measured = found["needs"].values == ""
    if (found["kind"].values[measured] == SAME).all():
        return "Measured on the very model."
    return (
        "Figures of a different model are no reproduction of the paper's, however near they are; "
        "only those of the same model are held against a tolerance."
    )


def _published(row: dict[str, float]) -> float | str:
    if np.isfinite(row["published"]):
        return row["published"]
    low, high = row["lower"], row["upper"]
    if np.isfinite(low) and np.isfinite(high):
        return f"{words.number(low)} to {words.number(high)}"
    if np.isfinite(low):
        return f"at least {words.number(low)}"
    return f"at most {words.number(high)}"
