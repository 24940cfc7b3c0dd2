"""Effects of heads and MLPs, and of what fits say of their outputs."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from mechnum.helix.clock.contents import CONTENTS, Fits
from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.effects import effects
from mechnum.patching.given import given_effects
from mechnum.patching.metrics import MetricName
from mechnum.patching.nodes import Node
from mechnum.tasks.pairs import Pairs


def head_effects(
    model: Model,
    pairs: Pairs,
    nodes: Sequence[Node],
    fits: Fits,
    metric: MetricName = "logit_diff",
) -> tuple[xr.Dataset, xr.Dataset]:
    """Total and direct effect of heads, and what each content does in their place.

    Returns:
        `total`, `direct` over (pair, node), `fitted` over (pair, node, content), the total effect
        of the content in the corrupt run, `kept` over the same, its effect in the clean run, and
        `r2` over (node, content), see `fitted_effects`; and the fitted and true values themselves,
        as `Fits.values` gives them.
    """
    values = fits.values(model, pairs, nodes, list(CONTENTS))
    measured = effects(model, pairs, nodes, metric=metric)
    kept = fitted_effects(model, pairs, values, metric, "noise")
    found = with_fits(measured, fitted_effects(model, pairs, values, metric), values)
    return found.assign(kept=kept), values


def with_fits(measured: xr.Dataset, fitted: xr.DataArray, values: xr.Dataset) -> xr.Dataset:
    """Effects of nodes beside those of their fits, and how good these are."""
    own = measured[["total", "direct", "clean_metric", "corrupt_metric"]]
    return own.assign(fitted=fitted, r2=values["r2"].transpose("node", "content"))


def fitted_effects(
    model: Model,
    pairs: Pairs,
    values: xr.Dataset,
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
) -> xr.DataArray:
    """The total effect of what each content says of the clean prompt, in place of the output.

    Args:
        values: as `Fits.values` gives them.
        direction: "denoise" puts it into the corrupt run, where it brings the clean numbers in and
            takes the corrupt ones out; "noise" into the clean run, where nothing else is wrong and
            the true value would change nothing.

    Returns:
        Over (pair, node, content), in units of the metric.
    """
    found = []
    for own in values["values"]:
        table = {str(node): own.sel(node=node).values for node in own["node"].values}
        one = given_effects(
            model, pairs, table, metric=metric, direction=direction, estimands=("total",)
        )
        found.append(one["total"].assign_coords(content=own["content"]))
    return xr.concat(found, "content").transpose("pair", "node", "content")
