"""Two stages of MLPs: those that build helix(a+b), and those that write it to the logits.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.helix.clock.contents import PERMUTED, Fits
from mechnum.helix.clock.heads import fitted_effects, with_fits
from mechnum.models.model import Model
from mechnum.patching.circuit.faithfulness import ratio
from mechnum.patching.effects import effects
from mechnum.patching.metrics import MetricName
from mechnum.patching.nodes import all_nodes
from mechnum.tasks.pairs import Pairs

# Above this share of its total effect, most of what an MLP does is direct.
HALF = 0.5
STAGES = ("compute", "read out", "unclear")


def mlp_stages(
    model: Model,
    pairs: Pairs,
    fits: Fits,
    metric: MetricName = "logit_diff",
    seed: int = 0,
) -> xr.Dataset:
    """How much of each MLP's effect is direct, and how much helix(a+b) in its place has.

    An MLP is of the stage "compute" where the 95 % interval of DE/TE lies below one half, "read
    out" where it lies above, and "unclear" where the interval reaches over one half or TE vanishes.

    Returns:
        `total`, `direct` over (pair, node), `fitted` over (pair, node, content) with the contents
        "a+b", "mean" and "permuted", `r2` over (node, content); over node, `direct_share` (DE/TE),
        `helix_share` (TE of helix(a+b) / TE), and its nulls `mean_share` and `permuted_share`, each
        with `_low` and `_high` (95 % bootstrap over pairs), `stage` and `status`. Ratios of a
        vanishing TE are NaN, and `status` says so.

    Raises:
        MechnumError: on a model without MLPs, and where there are too few numbers for the fits.
    """
    nodes = all_nodes("mlp", model.spec)
    measured = effects(model, pairs, nodes, metric=metric)
    values = fits.values(model, pairs, nodes, ["a+b", "mean"])
    found = with_fits(measured, fitted_effects(model, pairs, values, metric), values)
    parts = {
        "direct_share": found["direct"],
        "helix_share": found["fitted"].sel(content="a+b"),
        "mean_share": found["fitted"].sel(content="mean"),
        "permuted_share": found["fitted"].sel(content=PERMUTED),
    }
    clean, corrupt = found["clean_metric"].values, found["corrupt_metric"].values
    table = np.full((3, len(parts), len(nodes)), np.nan)
    status = []
    for row in range(len(nodes)):
        own = np.stack([part.values[:, row] for part in parts.values()], axis=1)
        gap = found["total"].values[:, row]
        *table[:, :, row], said = ratio(own, gap, clean, corrupt, seed)
        status.append(said)
    columns = {
        name + suffix: ("node", table[end, row])
        for row, name in enumerate(parts)
        for end, suffix in enumerate(("", "_low", "_high"))
    }
    stages = _stages(*table[1:, 0])
    return found.assign({**columns, "stage": ("node", stages), "status": ("node", status)})


def _stages(low: np.ndarray, high: np.ndarray) -> list[str]:
    """By the interval of DE/TE; comparisons with NaN are false."""
    chosen = np.select([high < HALF, low > HALF], [0, 1], 2)
    return [STAGES[at] for at in chosen]
