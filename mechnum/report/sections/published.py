"""What a paper published of its model, beside the same of this one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import reading
from mechnum.report.blocks import Caption, Table
from mechnum.report.page import Section

_DIFFERENT = (
    "These are different models, so the right column is no reproduction of the left one: at most "
    "their shapes agree."
)
# A difference of this share of a published figure counts as none.
NEAR = 0.2


def published_section(results: xr.DataTree) -> Section | None:
    """The figures in `/published`: `published` and `measured` over quantity.

    Attributes: `of`, the paper's model; `source`; `measure`, what is measured here;
    `comparison`, how far the two can be compared, where it is more than that they are other models.
    """
    found = reading.group(results, "published")
    if found is None:
        return None
    model, theirs = str(results.attrs.get("model", "the model")), str(found.attrs["of"])
    published, measured = found["published"].values, found["measured"].values
    agrees = np.abs(measured - published) <= NEAR * np.abs(published)
    known = np.isfinite(published) & np.isfinite(measured)
    names = found["quantity"].values
    frame = pd.DataFrame(
        {
            "quantity": names,
            f"published for {theirs}": published,
            f"measured here ({model})": measured,
            "within a fifth": np.where(known, np.where(agrees, "yes", "no"), ""),
        }
    )
    lead = (
        f"{int((agrees & known).sum())} of {int(known.sum())} figures lie within a fifth of those "
        f"that were published for {theirs}."
    )
    note = "" if theirs == model else str(found.attrs.get("comparison", _DIFFERENT))
    table = Table(
        title=f"Beside {theirs}",
        frame=frame,
        caption=Caption(
            text=f"Published: {found.attrs['source']}. Measured: {model}, "
            f"{found.attrs['measure']}. {note}"
        ),
    )
    return Section("Published figures", [table], lead)
