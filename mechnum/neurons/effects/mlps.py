"""Do the MLPs that write the answer hold the neurons of the sum?

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5 and its appendix on neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import PermutationMethod, pearsonr

from mechnum.errors import MechnumError
from mechnum.inputs import seed_sequence
from mechnum.intervals import RESAMPLES, mean_interval
from mechnum.models.model import Model
from mechnum.neurons.chosen import at_nodes, check_fit_of, layers_with_neurons
from mechnum.neurons.effects.order import Order, ordered_neurons
from mechnum.patching.batches import Direction
from mechnum.patching.circuit.faithfulness import ratio
from mechnum.patching.direct import NormHandling
from mechnum.patching.effects import effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import NodeNames
from mechnum.patching.nodes import Node
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

# Of layers, below which a correlation says nothing.
_FEWEST = 3


def mlp_shares(
    model: Model,
    pairs: Pairs,
    order: NodeNames | xr.DataArray,
    fitted: xr.Dataset,
    share: float = 0.01,
    layers: Sequence[int] | None = None,
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    norm: NormHandling = "exact",
    direction: Direction = "denoise",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    seed: int = 0,
) -> xr.Dataset:
    """Direct share of every MLP's effect, beside how much of its best neurons' waves are in a + b.

    MLPs that write straight to the logits (direct effect / total effect near 1) should hold neurons
    of the answer, a + b; those that others read, neurons of a and b. The paper finds R² = .79 over
    the 11 MLPs of GPT-J's circuit.

    Args:
        order: neurons, best first, or their scores, as in `mechnum.neurons.ablate`.
        fitted: of `mechnum.neurons.fit`, with `sum_share` over (layer, neuron).
        share: of all neurons of the model that are its best: the first of the order.
        layers: whose MLPs are compared; all without it.
        seed: of the intervals and of the permutations.
        position, metric, norm, direction, values, mean_over: as in `mechnum.effects`.

    Returns:
        Over (pair, layer): `total` and `direct`, in units of the metric. Over layer:
        `direct_share`, mean direct over mean total effect, with `low` and `high` (95 % bootstrap
        over pairs) and `status`, which says where the total effect vanishes or its interval holds
        0 (then NaN: a share of it says nothing); `sum_share`, the mean over the `n_neurons` best
        neurons of the layer that were fitted, NaN where there are none. Attributes: `pearson_r`,
        `r2` and `p` (permuted layers) over the `n_layers` that have both, NaN for fewer than three
        or where one of the two is constant.

    Raises:
        MechnumError: on a model without MLPs, layers and neurons that do not exist, a share that is
            none, and as `mechnum.effects`.
    """
    if not 0 < share <= 1:
        raise MechnumError(f"a share of {share} of the neurons is none: give 0.01, say")
    if position == "each":
        raise MechnumError("positions have shares of their own: call mlp_shares for each position")
    if "sum_share" not in fitted:
        raise MechnumError("the fit has no 'sum_share': fit with 'a+b' among the variables")
    check_fit_of(model, fitted)
    own = layers_with_neurons(model, layers)
    n_best = max(1, round(share * model.spec.n_layers * model.spec.d_mlp))
    best = ordered_neurons(model, order)[:n_best]
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    mlps = [Node("mlp", layer) for layer in own]
    found = effects(model, pairs, mlps, norm=norm, **asdict(intervention))
    sides = found["clean_metric"].values, found["corrupt_metric"].values
    total, direct = found["total"].values, found["direct"].values
    clear = mean_interval(found["total"], seed=seed)
    ratios = []
    for at in range(len(own)):
        low, high = (float(clear[end][at]) for end in ("low", "high"))
        if low < 0 < high:
            status = f"no clear total effect: its 95 % interval is {low:.3g} to {high:.3g}"
            ratios.append(([np.nan], [np.nan], [np.nan], status))
        else:
            ratios.append(ratio(direct[:, [at]], total[:, at], *sides, seed))
    table = xr.Dataset(
        {
            "total": (("pair", "layer"), total),
            "direct": (("pair", "layer"), direct),
            **{
                name: ("layer", np.array([one[at][0] for one in ratios]))
                for at, name in enumerate(("direct_share", "low", "high"))
            },
            "status": ("layer", [one[3] for one in ratios]),
            **_sum_shares(fitted, best, own),
        },
        {"pair": found["pair"], "layer": own},
        found.attrs | {"share": share, "n_best": len(best)},
    )
    return table.assign_attrs(_agreement(table, seed))


def _sum_shares(fitted: xr.Dataset, best: Order, layers: Sequence[int]) -> dict[str, Any]:
    """Mean share of a + b of the best neurons of each layer, and how many these are."""
    fitted_layers = set(fitted["layer"].values.tolist())
    means, counts = np.full(len(layers), np.nan), np.zeros(len(layers), dtype=np.int64)
    for row, layer in enumerate(layers):
        nodes = [Node("neuron", layer, int(index)) for index in best[best[:, 0] == layer, 1]]
        if not nodes or layer not in fitted_layers:
            continue
        shares = at_nodes(fitted[["sum_share"]], nodes)["sum_share"].values
        shares = shares[np.isfinite(shares)]
        counts[row] = len(shares)
        if len(shares):
            means[row] = shares.mean()
    return {"sum_share": ("layer", means), "n_neurons": ("layer", counts)}


def _agreement(table: xr.Dataset, seed: int) -> dict[str, float | int]:
    """Pearson's r of the two shares over layers, and how often permuted layers reach it."""
    direct, of_sum = table["direct_share"].values, table["sum_share"].values
    both = np.isfinite(direct) & np.isfinite(of_sum)
    x, y = direct[both], of_sum[both]
    said = {"n_layers": int(both.sum()), "pearson_r": np.nan, "r2": np.nan, "p": np.nan}
    if len(x) < _FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return said
    method = PermutationMethod(
        n_resamples=5 * RESAMPLES, rng=np.random.default_rng(seed_sequence(seed))
    )
    tested = pearsonr(x, y, method=method)
    r = float(tested.statistic)
    return said | {"pearson_r": r, "r2": r**2, "p": float(tested.pvalue)}
