"""Total, direct and indirect effects of nodes, exactly and for each pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.patching.batches import Batch, Direction, check_direction
from mechnum.patching.direct import NormHandling, direct_effect, direct_effects
from mechnum.patching.joint import joint_direct_differences, joint_scores
from mechnum.patching.local import (
    LocalDifference,
    Place,
    base_states,
    local_difference,
    replaced_states,
)
from mechnum.patching.metrics import Metric, MetricName
from mechnum.patching.nodes import Target
from mechnum.patching.propagate import propagate
from mechnum.patching.provenance import attributes
from mechnum.patching.selection import Selection, select
from mechnum.patching.sources import source, source_batches
from mechnum.patching.values import MeanOver, ValueName
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs

Estimand = Literal["total", "direct"]
_NORMS: Mapping[str, NormHandling] = {"direct": "exact", "direct_frozen": "frozen"}


def effects(
    model: Model,
    pairs: Pairs,
    nodes: str | Sequence[Target | str] = "heads",
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    values: ValueName = "other",
    estimands: Collection[Estimand] = ("total", "direct"),
    mean_over: MeanOver = "position",
    seed: int = 0,
) -> xr.Dataset:
    """Total, direct and indirect effect of nodes.

    The total effect is the metric of the base run with the node's value at `position` replaced,
    minus the metric of the base run; everything after the node is recomputed. The direct effect
    adds the difference of what is written there to the last residual and to nothing else, so that
    it reaches the logits through the final norm alone. Indirect = total − direct (Kantamneni &
    Tegmark 2025, section 5; Vig et al. 2020). The nodes of a set are replaced together.

    Args:
        nodes: a table of all nodes of a kind: "heads", "attn", "mlps", "neurons", "q", "k", "v",
            "kv" (keys and values of a group), "pattern" or "residual"; a list in words such as
            "head 9-13.*, mlp 19"; or nodes and frozensets of nodes.
        position: name of a position of the pairs ("a", "b", "op", "end"), an index (negative ones
            from the end), "all" to patch every position at once, or "each" for a sweep.
        metric: "logit_diff" is logit(clean answer) − logit(corrupt answer), "logprob" and "prob"
            are the clean answer's, "logit" is its raw logit, which a shift of all logits moves.
        direction: "denoise" patches the corrupt run, "noise" the clean one.
        values: what is put in: the "other" prompt's, "zero", the "mean" over the base prompts of
            all pairs, or those of another pair's base prompt, drawn at random ("resample").
        estimands: leave "total" out where only direct effects are wanted: those of all neurons cost
            a few matrix products, their total effects a suffix run for each neuron.
        mean_over: what the mean of an ablation is taken over: the same "position", every "token",
            or every "prompt" (the mean of the prompts' means).

    Returns:
        `total`, `direct`, `direct_frozen` (the final norm keeps the base run's scale, so that
        single nodes add up) and `indirect` over (pair, layer) with head, group or neuron, or over
        (pair, node) for a list; with "each" over position too, counted from the end. Positions that
        a pair does not have are NaN. `clean_metric` and `corrupt_metric` over pair. In units of the
        metric.

    Raises:
        MechnumError: on names that are not known, nodes and positions that do not exist, and pairs
            that the model cannot read.
    """
    said = attributes(model, pairs, metric)
    check_direction(direction)
    wanted = _check_estimands(estimands)
    selection = select(nodes, model.spec)
    pairs.check_fits(model)
    given = source(
        model,
        pairs,
        position,
        direction,
        values,
        mean_over,
        {name for kind in selection.kinds for name in base_states(kind)},
        {name for kind in selection.kinds for name in replaced_states(kind)},
        seed,
    )
    parts = source_batches(model, pairs, given)
    table = _Table(len(pairs), max(batch.length for batch in parts), selection, position, wanted)
    for batch in track(parts, f"effects of {selection.said}"):
        with exact(model.device):
            place, other = given.place(batch)
            measured = _Measurement(place, batch, selection, metric, wanted)
            table.put_scores(
                batch, direction, measured.base_score, measured.score(other.last[:, -1])
            )
            if position != "each":
                table.put(batch, 0, measured.at(place))
            else:
                for here in range(batch.position, batch.length):
                    table.put(batch, here - batch.length, measured.at(place.at(here)))
    return table.dataset().assign_attrs(
        said,
        nodes=selection.said,
        position=str(position),
        direction=direction,
        values=values,
        **({"mean_over": mean_over} if values == "mean" else {}),
        **({"resample_seed": seed} if values == "resample" else {}),
    )


def _check_estimands(estimands: Collection[Estimand]) -> tuple[Estimand, ...]:
    given = {estimands} if isinstance(estimands, str) else set(estimands)
    if not given or given - set(get_args(Estimand)):
        raise MechnumError(f"unknown estimands {estimands!r}: use 'total', 'direct' or both")
    return tuple(name for name in get_args(Estimand) if name in given)


class _Measurement:
    """The runs of one batch, and what their difference does."""

    def __init__(
        self,
        place: Place,
        batch: Batch,
        selection: Selection,
        metric_name: MetricName,
        wanted: tuple[Estimand, ...],
    ) -> None:
        self.decoder = place.decoder
        self.selection = selection
        self.wanted = wanted
        self.metric = Metric(self.decoder, metric_name, batch.answers, batch.corrupt_answers)
        self.last = place.base.last[:, -1]
        self.base_score = self.score(self.last)

    def score(self, last: Float[Tensor, "*row pair d_model"]) -> Float[Tensor, "*row pair"]:
        """The metric of last residuals."""
        return self.metric(self.decoder.final_norm(last))

    def at(self, place: Place) -> dict[str, Float[Tensor, "column pair"]]:
        """Each estimand of every column of the table, for patches at this place."""
        n_columns = int(np.prod(self.selection.shape))
        found = {
            name: torch.full((n_columns, len(self.last)), torch.nan, dtype=torch.float64)
            for name in _variables(self.wanted)
        }

        def put(name: str, columns: object, effects: Tensor) -> None:
            found[name][torch.as_tensor(columns)] = effects.double().cpu()

        cells = self.selection.cells
        local = [local_difference(place, cell.kind, cell.layer, cell.parts) for cell in cells]
        if "total" in self.wanted:
            for cell, effect in zip(cells, self._totals(place, local), strict=True):
                put("total", cell.columns, effect)
            if self.selection.sets:
                sets = list(self.selection.sets.values())
                scores = joint_scores(place, sets, self.score)
                put("total", list(self.selection.sets), scores - self.base_score)
        if "direct" in self.wanted:
            for cell, own in zip(cells, local, strict=True):
                either = direct_effects(self.decoder, self.last, own, self.metric)
                for name, norm in _NORMS.items():
                    put(name, cell.columns, either[norm])
            self._put_direct_of_sets(place, put)
        return found

    def _totals(
        self, place: Place, local: list[LocalDifference]
    ) -> list[Float[Tensor, "row pair"]]:
        """Total effects; rows whose value does not differ are exactly zero without a run."""
        changing = [own.nonzero() for own in local]
        patches = [own.select(rows).patches() for own, rows in zip(local, changing, strict=True)]
        scores = propagate(self.decoder, place.base, patches, self.score)
        totals = []
        for own, rows, score in zip(local, changing, scores, strict=True):
            total = score.new_zeros(own.n_rows, len(self.last))
            total[rows] = score - self.base_score
            totals.append(total)
        return totals

    def _put_direct_of_sets(self, place: Place, put: Callable[[str, object, Tensor], None]) -> None:
        if not self.selection.sets:
            return
        sets = list(self.selection.sets.values())
        differences = joint_direct_differences(place, sets)
        for name, norm in _NORMS.items():
            effect = direct_effect(self.decoder, self.last, differences, self.metric, norm)
            put(name, list(self.selection.sets), effect)


def _variables(wanted: tuple[Estimand, ...]) -> list[str]:
    names = ["total"] if "total" in wanted else []
    return [*names, *_NORMS] if "direct" in wanted else names


class _Table:
    """The results of all pairs."""

    def __init__(
        self,
        n_pairs: int,
        length: int,
        selection: Selection,
        position: str | int,
        wanted: tuple[Estimand, ...],
    ) -> None:
        self.selection = selection
        self.sweep = position == "each"
        self.length = length
        n_positions = length if self.sweep else 1
        shape = (n_pairs, n_positions, int(np.prod(selection.shape)))
        self.values = {name: np.full(shape, np.nan) for name in _variables(wanted)}
        self.metrics = {side: np.full(n_pairs, np.nan) for side in ("clean", "corrupt")}

    def put(self, batch: Batch, position: int, found: dict[str, Tensor]) -> None:
        """Results of a batch at a position, counted from the end."""
        index = batch.index.numpy()
        for name, effect in found.items():
            self.values[name][index, position] = effect.T.numpy()
            if self.sweep and position == batch.position - batch.length:
                # Before the first difference nothing changes.
                self.values[name][index, -batch.length : position] = 0.0

    def put_scores(self, batch: Batch, direction: Direction, base: Tensor, other: Tensor) -> None:
        """The metric of the two prompts of each pair."""
        names = ("corrupt", "clean") if direction == "denoise" else ("clean", "corrupt")
        for name, score in zip(names, (base, other), strict=True):
            self.metrics[name][batch.index.numpy()] = score.double().cpu().numpy()

    def dataset(self) -> xr.Dataset:
        """Everything under its name."""
        lead = ("pair", "position") if self.sweep else ("pair",)
        dims = (*lead, *self.selection.dims)
        arrays = {}
        for name, values in self.values.items():
            lead_shape = values.shape[: len(lead)] if self.sweep else values.shape[:1]
            arrays[name] = (dims, values.reshape(*lead_shape, *self.selection.shape))
        if {"total", "direct"} <= set(arrays):
            arrays["indirect"] = (dims, arrays["total"][1] - arrays["direct"][1])
        coords: dict[str, object] = {"pair": np.arange(len(self.metrics["clean"]))}
        if self.sweep:
            coords["position"] = np.arange(-self.length, 0)
        coords.update({dim: list(self.selection.coords[dim]) for dim in self.selection.dims})
        metrics = {f"{side}_metric": ("pair", score) for side, score in self.metrics.items()}
        return xr.Dataset({**arrays, **metrics}, coords)
