"""Are the classes true? All heads patched in one run, each with what its class says that it does.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from mechnum.helix.clock.classes import MEASURED, classes_at
from mechnum.helix.clock.contents import PERMUTED
from mechnum.models.model import Model
from mechnum.patching.circuit.faithfulness import ratio
from mechnum.patching.given import Given, Route, joint_given_effects
from mechnum.patching.metrics import MetricName
from mechnum.tasks.pairs import Pairs

# Content and readers of each class. What a class does not claim stays as in the corrupt run.
_ROLES: Mapping[str, tuple[str, Route]] = {
    "a,b": ("a,b", "indirect"),
    "a+b": ("a+b", "direct"),
    "mixed": ("a,b,a+b", "all"),
    "unclear": ("a,b,a+b", "all"),
}
_SWAPPED = {"a,b": "a+b", "a+b": "a,b"}


def joint_validation(
    model: Model,
    pairs: Pairs,
    classes: xr.Dataset,
    values: xr.Dataset,
    whole: xr.DataArray,
    metric: MetricName = "logit_diff",
    seed: int = 0,
) -> xr.Dataset:
    """The joint effect of the heads when each passes on only what its class says.

    In one run, at the last position of the corrupt prompt: a,b-heads pass helix(a, b) on to all
    readers but the logits, a+b-heads helix(a+b) to the logits alone, mixed and unclear heads
    helix(a, b, a+b) to all. It is run for each number m of mixed heads.

    Args:
        classes: of `head_classes`.
        values: of `Fits.values`, for these heads.
        whole: over pair, the joint effect of all heads of the model with their clean values.

    Returns:
        `effect` over (pair, set), and over set `share` of `whole` and `share_of_true`, each with
        `_low` and `_high` (95 % bootstrap over pairs), and `n_mixed`. The sets: "m=0", "m=1", …;
        "true", the heads' clean values to all readers, the most that can be reached; "swapped",
        m=0 with the two classes' content and readers exchanged; "permuted", the fit to shuffled
        numbers, and "mean", the heads' mean output, to all readers. NaN where there is no effect to
        share out, as `share_status` and `share_of_true_status` then say.

    Raises:
        MechnumError: as `mechnum.patching.given.joint_given_effects`.
    """
    nodes = [str(node) for node in classes["node"].values]
    n_known = int((classes["status"].values == MEASURED).sum())

    def as_classes(names: Sequence[str]) -> dict[str, Given]:
        roles = [_ROLES[name] for name in names]
        return {
            node: Given(values["values"].sel(content=content, node=node).values, route)
            for node, (content, route) in zip(nodes, roles, strict=True)
        }

    sets = {f"m={m}": as_classes(classes_at(classes, m)) for m in range(n_known + 1)}
    sets["true"] = {node: Given(values["true"].sel(node=node).values) for node in nodes}
    sets["swapped"] = as_classes([_SWAPPED.get(name, name) for name in classes_at(classes, 0)])
    for control in (PERMUTED, "mean"):
        own = values["values"].sel(content=control)
        sets[control] = {node: Given(own.sel(node=node).values) for node in nodes}
    found = joint_given_effects(model, pairs, sets, metric=metric)
    effect = found["effect"].values
    clean, corrupt = found["clean_metric"].values, found["corrupt_metric"].values
    columns: dict[str, tuple[str, np.ndarray]] = {}
    statuses: dict[str, str] = {}
    for name, gap in (
        ("share", whole.values),
        ("share_of_true", found["effect"].sel(set="true").values),
    ):
        share, low, high, statuses[f"{name}_status"] = ratio(effect, gap, clean, corrupt, seed)
        columns |= {
            name: ("set", share),
            f"{name}_low": ("set", low),
            f"{name}_high": ("set", high),
        }
    mixed = [float(name[2:]) if name.startswith("m=") else np.nan for name in sets]
    return found.assign({"n_mixed": ("set", mixed), **columns, **statuses})
