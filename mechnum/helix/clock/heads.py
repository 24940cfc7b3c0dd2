"""Effects of heads and MLPs, and of what fits say of their outputs."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from mechnum.helix.clock.contents import CONTENTS, Fits
from mechnum.models.model import Model
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
    """Total and direct effect of heads, and the total effect of each content in their place.

    Returns:
        `total`, `direct` over (pair, node), `fitted` over (pair, node, content) and `r2` over
        (node, content), see `fitted_effects`; and the fitted and true values themselves, as
        `Fits.values` gives them.
    """
    values = fits.values(model, pairs, nodes, list(CONTENTS))
    measured = effects(model, pairs, nodes, metric=metric)
    return with_fits(measured, fitted_effects(model, pairs, values, metric), values), values


def with_fits(measured: xr.Dataset, fitted: xr.DataArray, values: xr.Dataset) -> xr.Dataset:
    """Effects of nodes beside those of their fits, and how good these are."""
    kept = measured[["total", "direct", "clean_metric", "corrupt_metric"]]
    return kept.assign(fitted=fitted, r2=values["r2"].transpose("node", "content"))


def fitted_effects(
    model: Model, pairs: Pairs, values: xr.Dataset, metric: MetricName = "logit_diff"
) -> xr.DataArray:
    """The total effect of each content in place of each node's output.

    Args:
        values: as `Fits.values` gives them.

    Returns:
        Over (pair, node, content), in units of the metric.
    """
    found = []
    for own in values["values"]:
        table = {str(node): own.sel(node=node).values for node in own["node"].values}
        one = given_effects(model, pairs, table, metric=metric, estimands=("total",))
        found.append(one["total"].assign_coords(content=own["content"]))
    return xr.concat(found, "content").transpose("pair", "node", "content")
