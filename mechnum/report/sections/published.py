"""What a paper published of its model, beside the same of this one."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import reading
from mechnum.report.blocks import Caption, Table
from mechnum.report.page import Section


def published_section(results: xr.DataTree) -> Section | None:
    """The figures in `/published`: `published` and `measured` over quantity.

    Attributes: `of`, the paper's model; `source`; `measure`, what is measured here.
    """
    found = reading.group(results, "published")
    if found is None:
        return None
    model, theirs = str(results.attrs.get("model", "the model")), str(found.attrs["of"])
    frame = pd.DataFrame(
        {
            "quantity": found["quantity"].values,
            f"published for {theirs}": found["published"].values,
            f"measured here ({model})": found["measured"].values,
        }
    )
    table = Table(
        title=f"Beside {theirs}",
        frame=frame,
        caption=Caption(
            text=f"Published: {found.attrs['source']}. Measured: {model}, {found.attrs['measure']}."
            + (
                ""
                if theirs == model
                else " These are different models, so the right column is no reproduction of the "
                "left one: at most their shapes agree."
            )
        ),
    )
    return Section("Published figures", [table])
