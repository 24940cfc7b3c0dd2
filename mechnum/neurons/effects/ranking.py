"""Which neurons matter: all of them by cheap scores, the best of them exactly.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5 and its appendix on neurons.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args

import numpy as np
import xarray as xr
from jaxtyping import Int
from scipy.stats import spearmanr

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.models.model import Model
from mechnum.neurons.chosen import at_nodes, layers_with_neurons
from mechnum.neurons.effects.scores import RANKINGS, Ranking, adjusted, score_table
from mechnum.patching.attribution.confirm import agreement
from mechnum.patching.batches import Direction
from mechnum.patching.direct import NormHandling, check_norm
from mechnum.patching.effects import effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.metrics import MetricName
from mechnum.patching.nodes import Node, all_nodes
from mechnum.patching.statistics import summarise
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

# Of all neurons, whose layers are counted (the paper's 4587 of GPT-J's 458,752).
TOP_SHARE = 0.01


def rank(
    model: Model,
    pairs: Pairs,
    top: int = 100,
    by: Ranking = "estimate",
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    norm: NormHandling = "exact",
    direction: Direction = "denoise",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    alpha: float = 0.05,
    seed: int = 0,
) -> xr.DataTree:
    """All neurons by direct effect and by estimated total effect, the best with exact total effect.

    The direct effects of all neurons are exact and in closed form. Their total effects are
    estimated by the gradient (attribution patching) and measured exactly for the `top` neurons.
    The pairs are split into two halves: the neurons are chosen on one, and every score, interval
    and test is of the other, so that a neuron that is best by chance gains nothing.

    What it takes: about six runs of each pair, and about 1 GiB for the values of all neurons and
    pairs, whatever the model: what is more is done a few layers at a time.

    Args:
        top: how many neurons get their exact total effect; all where the model has fewer.
        by: what these are chosen by: the "estimate" of the total effect, or the "direct" effect;
            those first that have the sign of the effect of all MLPs together (negative where the
            metric falls, as with direction "noise").
        alpha: below which q a neuron counts as found, in the attributes.
        seed: of the halves, of the intervals and tests, and of values "resample".
        position, metric, norm, direction, values, mean_over: as in `mechnum.effects`.

    Returns:
        A tree whose attributes say how it was measured.

        `neurons`, over (layer, neuron): `direct` and `estimate`, the mean over the held-out pairs
        in units of the metric, each with `_low` and `_high` (95 % bootstrap over pairs), `_p`
        (sign flips) and `_q` (Benjamini-Hochberg among all neurons), and `_selected`, the mean over
        the other half. Over (ranking, layer): `top_share`, how much of the best 1 % of all neurons
        the layer has, on the half that is chosen on. Over ranking: `halves_agree`, the rank
        correlation of the two halves' means over all neurons; NaN where one of them is constant.

        `top`, over node, best first, with the coordinates layer and neuron: the same variables,
        with q among these alone, which were chosen on other pairs; `total` over (pair, node), and
        `total_mean`, `total_low`, `total_high`, `total_p`, `total_q` over node; `clean_metric` and
        `corrupt_metric` over pair. Attributes: `rank_correlation` and `largest_disagreement` of
        `estimate` and `total_mean`; `found_total`, how many have q below `alpha`.

        No p is below 1/2001, so that one neuron alone cannot reach a small q among very many: see
        `mechnum.summarise`, and read the q of `top`.

    Raises:
        MechnumError: on a model without MLPs, on a sweep over positions, on fewer than two pairs,
            and as `mechnum.effects` and `mechnum.attribute`.
    """
    top = positive_integer("top", top)
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    said = intervention.said(model, pairs)
    _check(by, position, alpha)
    check_norm(norm)
    layers_with_neurons(model)
    pairs.check_fits(model)
    chosen_on, held_out = pairs.split(seed=seed)
    table = score_table(model, chosen_on, held_out, intervention, norm, seed)
    sign = _sign(model, chosen_on, intervention)
    orders: dict[Ranking, Int[np.ndarray, " neuron"]] = {
        name: _order(table[f"{name}_selected"] * sign) for name in RANKINGS
    }
    d_mlp = model.spec.d_mlp
    best = [Node("neuron", *divmod(int(flat), d_mlp)) for flat in orders[by][:top]]
    said |= {
        "norm": norm,
        "ranked_by": by,
        "sign": sign,
        "alpha": alpha,
        "n_chosen_on": len(chosen_on),
        "n_held_out": len(held_out),
        "null": "sign flips of pairs; Benjamini-Hochberg among the neurons of the table",
    }
    found = {f"found_{name}": int((table[f"{name}_q"] < alpha).sum()) for name in RANKINGS}
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=said),
            "/neurons": table.assign(_by_ranking(table, orders)).assign_attrs(found),
            "/top": _exact(model, held_out, at_nodes(table, best), intervention, alpha),
        }
    )


def _exact(
    model: Model, pairs: Pairs, table: xr.Dataset, intervention: Intervention, alpha: float
) -> xr.Dataset:
    """The chosen neurons' rows of the table with their total effects."""
    nodes = [str(node) for node in table["node"].values]
    measured = effects(model, pairs, nodes, estimands=("total",), **asdict(intervention))
    total = summarise(measured["total"], seed=intervention.seed)
    # Exactly 0 for every pair: the interval is as well.
    zero = {name: (table[f"{name}_low"] == 0) & (table[f"{name}_high"] == 0) for name in RANKINGS}
    q = {f"{name}_q": adjusted(table, name, zero[name]) for name in RANKINGS}
    total = total.rename({what: f"total_{what}" for what in total}).drop_vars("total_n")
    table = table.assign(q | dict(measured.data_vars) | dict(total.data_vars))
    return table.assign_attrs(
        found_total=int((table["total_q"] < alpha).sum()),
        **agreement(table["estimate"].values, table["total_mean"].values),
    )


def _by_ranking(table: xr.Dataset, orders: dict[Ranking, Int[np.ndarray, " neuron"]]) -> xr.Dataset:
    """Where the best neurons lie, and how far the halves agree."""
    n_layers, d_mlp = table.sizes["layer"], table.sizes["neuron"]
    n_best = max(1, round(TOP_SHARE * n_layers * d_mlp))
    shares, agree = [], []
    for name, order in orders.items():
        shares.append(np.bincount(order[:n_best] // d_mlp, minlength=n_layers) / n_best)
        halves = [table[half].values.ravel() for half in (name, f"{name}_selected")]
        constant = min(np.ptp(half) for half in halves) == 0
        agree.append(np.nan if constant else float(spearmanr(*halves).statistic))
    return xr.Dataset(
        {"top_share": (("ranking", "layer"), shares), "halves_agree": ("ranking", agree)},
        {"ranking": list(orders), "layer": table["layer"]},
    )


def _order(scores: xr.DataArray) -> Int[np.ndarray, " neuron"]:
    """Flat indices of the neurons, the largest score first."""
    return np.argsort(-scores.values, axis=None, kind="stable")


def _sign(model: Model, pairs: Pairs, intervention: Intervention) -> int:
    """1, or −1 where the metric falls when what all MLPs write is replaced."""
    every = [frozenset(all_nodes("mlp", model.spec))]
    found = effects(model, pairs, every, estimands=("total",), **asdict(intervention))
    return -1 if found["total"].mean() < 0 else 1


def _check(by: str, position: str | int, alpha: float) -> None:
    if by not in get_args(Ranking):
        raise MechnumError(f"cannot rank neurons by {by!r}: use 'direct' or 'estimate'")
    if position == "each":
        raise MechnumError("positions have rankings of their own: call rank for each position")
    if not 0 < alpha < 1:
        raise MechnumError(f"alpha={alpha} is no share of false discoveries: give 0.05, say")
