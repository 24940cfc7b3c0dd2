"""Total, direct and indirect effects of nodes, exactly and for each pair."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.cost import announce
from mechnum.patching.direct import NormHandling, check_norm, direct_effect, direct_effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.joint import joint_direct_differences, joint_scores
from mechnum.patching.local import LocalDifference, Place, local_difference, states_to_keep
from mechnum.patching.measure import Scorer, measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import NodeNames
from mechnum.patching.propagate import propagate
from mechnum.patching.selection import Selection, select
from mechnum.patching.sources import Source, source
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

Estimand = Literal["total", "direct"]


def effects(
    model: Model,
    pairs: Pairs,
    nodes: NodeNames = "heads",
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    norm: NormHandling = "exact",
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
        norm: whether `direct`, and so `indirect`, recomputes the final norm or keeps the base
            run's scale ("frozen"), as `direct_frozen` always does.
        direction: "denoise" patches the corrupt run, "noise" the clean one.
        values: what is put in: the "other" prompt's, "zero", the "mean" over the base prompts of
            all pairs, or those of another pair's base prompt, drawn at random ("resample").
        estimands: leave "total" out where only direct effects are wanted: those of all neurons cost
            a few matrix products, their total effects a suffix run for each neuron.
        mean_over: what the mean of an ablation is taken over: the same "position", every "token",
            or every "prompt" (the mean of the prompts' means).

    Returns:
        `total`, `direct`, `direct_frozen` (with which single nodes add up) and `indirect` over
        (pair, layer) with head, group or neuron, or over (pair, node) for a list; with "each" over
        position too, counted from the end. Positions that a pair does not have are NaN.
        `clean_metric` and `corrupt_metric` over pair. In units of the metric.

    Raises:
        MechnumError: on names that are not known, nodes and positions that do not exist, and pairs
            that the model cannot read.

    Warns:
        UserWarning: before a measurement that takes very long or very much memory.
    """
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    said = intervention.said(model, pairs)
    wanted = check_estimands(estimands)
    check_norm(norm)
    selection = select(nodes, model.spec)
    pairs.check_fits(model)
    announce_effects(model, pairs, intervention, selection, wanted)
    given = source(model, pairs, intervention, *states_to_keep(selection.kinds))
    return measured_effects(model, pairs, given, selection, wanted, norm).assign_attrs(said)


def announce_effects(
    model: Model,
    pairs: Pairs,
    intervention: Intervention,
    selection: Selection,
    wanted: tuple[Estimand, ...],
) -> None:
    """Warns before effects that take very long or very much memory."""
    n_tables = sum({"total": 1, "direct": 2}[name] for name in wanted) + (len(wanted) == 2)
    announce(
        model,
        pairs,
        intervention,
        f"effects of {selection.said}",
        n_tables * int(np.prod(selection.shape)),
        selection.n_layers_run(model.spec) if "total" in wanted else 0.0,
    )


def measured_effects(
    model: Model,
    pairs: Pairs,
    given: Source,
    selection: Selection,
    wanted: tuple[Estimand, ...],
    norm: NormHandling,
) -> xr.Dataset:
    """The effects of the selection's nodes, whatever it is that is put in."""
    measurement = _Effects(selection, wanted, norm)
    dims = {dim: selection.coords[dim] for dim in selection.dims}
    found = measure(model, pairs, given, measurement.at, dims, f"effects of {selection.said}")
    if len(wanted) == 2:
        found["indirect"] = found["total"] - found["direct"]
    return found.assign_attrs(nodes=selection.said, norm=norm)


def check_estimands(estimands: Collection[Estimand]) -> tuple[Estimand, ...]:
    """The estimands in order.

    Raises:
        MechnumError: on none, and on names that are not known.
    """
    given = {estimands} if isinstance(estimands, str) else set(estimands or ())
    if not given or given - set(get_args(Estimand)):
        raise MechnumError(f"unknown estimands {estimands!r}: use 'total', 'direct' or both")
    return tuple(name for name in get_args(Estimand) if name in given)


class _Effects:
    """What is measured at one place."""

    def __init__(
        self, selection: Selection, wanted: tuple[Estimand, ...], norm: NormHandling
    ) -> None:
        self.cells = selection.cells
        self.columns = [torch.from_numpy(cell.columns) for cell in self.cells]
        self.n_columns = int(np.prod(selection.shape))
        self.sets = list(selection.sets.values())
        self.set_columns = torch.tensor(list(selection.sets), dtype=torch.long)
        self.wanted = wanted
        self.norms: Mapping[str, NormHandling] = {"direct": norm, "direct_frozen": "frozen"}

    def at(self, place: Place, scorer: Scorer) -> dict[str, Float[Tensor, "column pair"]]:
        """Each estimand of every column of the table."""
        local = [local_difference(place, cell.kind, cell.layer, cell.parts) for cell in self.cells]
        found: dict[str, Tensor] = {}
        if "total" in self.wanted:
            singles = self._totals(place, scorer, local)
            found["total"] = self._assembled(singles, self._joint_totals(place, scorer))
        if "direct" in self.wanted:
            either = [
                direct_effects(scorer.decoder, scorer.last, own, scorer.metric) for own in local
            ]
            joint = self._joint_directs(place, scorer)
            for name, norm in self.norms.items():
                found[name] = self._assembled([one[norm] for one in either], joint[norm])
        return found

    def _totals(
        self, place: Place, scorer: Scorer, local: list[LocalDifference]
    ) -> list[Float[Tensor, "_ pair"]]:
        """Total effects; rows whose value does not differ are exactly zero without a run."""
        changing = [own.nonzero() for own in local]
        patches = [own.select(rows).patches() for own, rows in zip(local, changing, strict=True)]
        scores = propagate(scorer.decoder, place.base, patches, scorer.score)
        totals = []
        for own, rows, score in zip(local, changing, scores, strict=True):
            total = score.new_zeros(own.n_rows, len(scorer.last))
            total[rows] = score - scorer.base_score
            totals.append(total)
        return totals

    def _joint_totals(self, place: Place, scorer: Scorer) -> Float[Tensor, "set pair"]:
        if not self.sets:
            return scorer.last.new_zeros(0, len(scorer.last))
        return joint_scores(place, self.sets, scorer.score) - scorer.base_score

    def _joint_directs(
        self, place: Place, scorer: Scorer
    ) -> dict[NormHandling, Float[Tensor, "set pair"]]:
        if not self.sets:
            return dict.fromkeys(self.norms.values(), scorer.last.new_zeros(0, len(scorer.last)))
        differences = joint_direct_differences(place, self.sets)
        return {
            norm: direct_effect(scorer.decoder, scorer.last, differences, scorer.metric, norm)
            for norm in self.norms.values()
        }

    def _assembled(
        self, singles: list[Float[Tensor, "_ pair"]], joint: Float[Tensor, "set pair"]
    ) -> Float[Tensor, "column pair"]:
        table = torch.full(
            (self.n_columns, joint.shape[1]), torch.nan, dtype=torch.float64, device="cpu"
        )
        for columns, effect in zip(self.columns, singles, strict=True):
            table[columns] = effect.double().cpu()
        table[self.set_columns] = joint.double().cpu()
        return table
