"""Direct effects and estimates of total effects of all neurons, a few layers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import xarray as xr

from mechnum.models.model import Model
from mechnum.models.spec import ModelSpec
from mechnum.patching.attribution.attribution import node_estimates
from mechnum.patching.direct import NormHandling
from mechnum.patching.effects import measured_effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.local import states_to_keep
from mechnum.patching.selection import Selection, select
from mechnum.patching.sources import source
from mechnum.patching.statistics import false_discoveries, summarise
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs

# What neurons are ranked by: the exact direct effect, or the estimate of the total effect.
Ranking = Literal["direct", "estimate"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)

# Of the values of every pair that are held at a time; what is kept of them is a number a neuron.
_TABLE_BYTES = 2**30


def score_table(
    model: Model,
    chosen_on: Pairs,
    held_out: Pairs,
    intervention: Intervention,
    norm: NormHandling,
    seed: int,
) -> xr.Dataset:
    """Means over two sets of pairs, and the statistics of the second one.

    Returns:
        Over (layer, neuron), for each of `RANKINGS`: its mean over the held-out pairs under its own
        name, `_low`, `_high`, `_p` and `_q` beside it (`mechnum.summarise`; q among all neurons of
        the model), and `_selected`, the mean over the pairs that are chosen on.
    """
    every = select("neurons", model.spec)
    parts: list[xr.Dataset] = []
    zeros: list[xr.Dataset] = []
    for layers in track(_layers(model.spec, len(held_out)), "ranking neurons"):
        selection = every.of_layers(layers)
        found, zero = {}, {}
        for name, values in _values(model, chosen_on, selection, intervention, norm):
            found[f"{name}_selected"] = values.mean("pair")
        for name, values in _values(model, held_out, selection, intervention, norm):
            own = summarise(values, seed=seed)
            found[name] = own["mean"]
            found |= {f"{name}_{what}": own[what] for what in ("low", "high", "p")}
            zero[name] = (values == 0).all("pair")
        parts.append(xr.Dataset(found))
        zeros.append(xr.Dataset(zero))
    table, zero = xr.concat(parts, "layer"), xr.concat(zeros, "layer")
    return table.assign({f"{name}_q": adjusted(table, name, zero[name]) for name in RANKINGS})


def adjusted(table: xr.Dataset, name: Ranking, zero: xr.DataArray) -> xr.DataArray:
    """The q-values of a ranking among the neurons of a table."""
    p = table[f"{name}_p"]
    return p.copy(data=false_discoveries(p.values, zero.values))


def _values(
    model: Model,
    pairs: Pairs,
    selection: Selection,
    intervention: Intervention,
    norm: NormHandling,
) -> Iterator[tuple[Ranking, xr.DataArray]]:
    """Each ranking's values of all pairs, one after the other."""
    given = source(model, pairs, intervention, *states_to_keep(selection.kinds))
    yield "direct", measured_effects(model, pairs, given, selection, ("direct",), norm)["direct"]
    yield "estimate", node_estimates(model, pairs, selection, intervention)["estimate"]


def _layers(spec: ModelSpec, n_pairs: int) -> list[range]:
    """All layers, as many at a time as the values of all pairs allow."""
    # Direct effects come with those of the frozen norm.
    size = max(1, _TABLE_BYTES // (2 * 8 * n_pairs * spec.d_mlp))
    return [
        range(first, min(first + size, spec.n_layers)) for first in range(0, spec.n_layers, size)
    ]
