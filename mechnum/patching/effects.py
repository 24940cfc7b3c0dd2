"""Total, direct and indirect effects of components, exactly and for each pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import Run, StateName, run
from mechnum.patching.direct import NormHandling, direct_effect
from mechnum.patching.metrics import Metric, MetricName, metric
from mechnum.patching.propagate import propagate, states_for
from mechnum.patching.provenance import attributes
from mechnum.patching.writes import NodeKind, injection, state_of, write_difference
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs

Direction = Literal["denoise", "noise"]


@dataclass(frozen=True)
class Batch:
    """Pairs of one token count whose patched position is the same.

    Attributes:
        base: tokens of the run that is patched.
        source: tokens of the run that values come from.
        position: of the patch.
        index: place of each pair among all pairs.
    """

    base: Int[Tensor, "pair pos"]
    source: Int[Tensor, "pair pos"]
    answers: Int[Tensor, " pair"]
    corrupt_answers: Int[Tensor, " pair"]
    position: int
    index: Int[Tensor, " pair"]


def effects(
    model: Model,
    pairs: Pairs,
    nodes: NodeKind = "heads",
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    norm: NormHandling = "exact",
    direction: Direction = "denoise",
) -> xr.Dataset:
    """Total, direct and indirect effect of every head, attention layer or MLP.

    The total effect is the metric of the base run with the node's output at `position` replaced by
    the source run's, minus the metric of the base run; everything after the node is recomputed. The
    direct effect adds the difference of the node's write to the last residual and to nothing else;
    it is 0 away from the last position, where the logits are not read. Indirect = total − direct
    (Kantamneni & Tegmark 2025, section 5; Vig et al. 2020).

    Args:
        nodes: "heads" patches each head's z, "attn" and "mlps" a layer's whole output.
        position: name of a position of the pairs ("a", "b", "op", "end") or an index, negative
            ones from the end.
        metric: "logit_diff" is logit(clean answer) − logit(corrupt answer), "logprob" and "prob"
            are the clean answer's, "logit" is its raw logit, which a shift of all logits moves.
        norm: whether the direct effect recomputes the final norm or keeps the base run's scale.
        direction: "denoise" patches clean values into the corrupt run, "noise" the reverse.

    Returns:
        `total`, `direct` and `indirect` over (pair, layer) and, for heads, (pair, layer, head);
        `clean_metric` and `corrupt_metric` over pair. In units of the metric.

    Raises:
        MechnumError: on names that are not known, positions that the prompts do not have, and
            pairs that the model cannot read.
    """
    state_of(nodes)
    said = attributes(model, pairs, metric)
    if direction not in get_args(Direction):
        raise MechnumError(f"unknown direction {direction!r}: use 'denoise' or 'noise'")
    if nodes == "mlps" and model.spec.d_mlp == 0:
        raise MechnumError(f"{model.name} has no MLPs: use nodes='heads' or nodes='attn'")
    pairs.check_fits(model)
    n_nodes = model.spec.n_heads if nodes == "heads" else 1
    shape = (len(pairs), model.spec.n_layers, n_nodes)
    total, direct = np.full(shape, np.nan), np.full(shape, np.nan)
    scores = {"clean": np.full(len(pairs), np.nan), "corrupt": np.full(len(pairs), np.nan)}
    parts = list(pair_batches(model, pairs, position, direction, n_nodes))
    for batch in track(parts, f"effects of {nodes}"):
        index = batch.index.numpy()
        with exact(model.device):
            measured = _Measurement(model.decoder, batch, nodes, metric, norm)
            total[index] = measured.total().double().permute(2, 0, 1).cpu().numpy()
            direct[index] = measured.direct().double().permute(2, 0, 1).cpu().numpy()
            base, source = measured.endpoints()
        receiving, giving = ("corrupt", "clean") if direction == "denoise" else ("clean", "corrupt")
        scores[receiving][index] = base.double().cpu().numpy()
        scores[giving][index] = source.double().cpu().numpy()
    return _dataset(total, direct, scores, nodes).assign_attrs(
        said,
        nodes=nodes,
        position=str(position),
        norm=norm,
        direction=direction,
    )


class _Measurement:
    """The two runs of one batch, and what their difference does."""

    def __init__(
        self,
        decoder: Decoder,
        batch: Batch,
        kind: NodeKind,
        metric_name: MetricName,
        norm: NormHandling,
    ) -> None:
        self.decoder = decoder
        self.kind: NodeKind = kind
        self.norm: NormHandling = norm
        self.at_end = batch.position == batch.base.shape[1] - 1
        state: StateName = state_of(kind)
        self.base: Run = run(
            decoder, batch.base, {state, *states_for(decoder)}, start=batch.position
        )
        self.source: Run = run(decoder, batch.source, {state}, start=batch.position)
        self.metric: Metric = metric(decoder, metric_name, batch.answers, batch.corrupt_answers)
        self.differences = [
            write_difference(decoder, kind, layer, self.source, self.base)
            for layer in range(decoder.spec.n_layers)
        ]

    def score(self, last: Float[Tensor, "*stack pair d_model"]) -> Float[Tensor, "*stack pair"]:
        return self.metric(self.decoder.final_norm(last))

    def endpoints(self) -> tuple[Float[Tensor, " pair"], Float[Tensor, " pair"]]:
        """The metric of the base and of the source run."""
        return self.score(self.base.last[:, -1]), self.score(self.source.last[:, -1])

    def total(self) -> Float[Tensor, "layer node pair"]:
        patches = [
            injection(self.decoder, self.kind, layer, self.base, difference)
            for layer, difference in enumerate(self.differences)
        ]
        ends = propagate(self.decoder, self.base, patches)
        return torch.stack([self.score(end) for end in ends]) - self.score(self.base.last[:, -1])

    def direct(self) -> Float[Tensor, "layer node pair"]:
        differences = torch.stack(self.differences)
        if not self.at_end:
            return differences.new_zeros(differences.shape[:-1])
        last = self.base.last[:, -1]
        return torch.stack(
            [
                direct_effect(self.decoder, last, difference, self.metric, self.norm)
                for difference in differences
            ]
        )


def pair_batches(
    model: Model, pairs: Pairs, position: str | int, direction: Direction, n_nodes: int
) -> Iterator[Batch]:
    """The pairs in batches whose runs and patches fit the memory budget.

    Raises:
        MechnumError: on a position that the prompts do not have.
    """
    spec = model.spec
    for group in pairs.groups:
        length = group.clean.tokens.shape[1]
        places = resolve_position(position, group.clean.positions, length)
        base, source = group.corrupt, group.clean
        if direction == "noise":
            base, source = source, base
        for place in places.unique().tolist():
            rows = (places == place).nonzero().flatten()
            kept = length - place
            # Keys and values of all positions, four residuals, and the stack of all patches.
            layer_floats = 2 * length * spec.n_kv_heads * spec.d_head + 6 * kept * spec.d_model
            stack_floats = 3 * n_nodes * kept * spec.d_model
            row_bytes = 4 * spec.n_layers * (layer_floats + stack_floats)
            row_bytes += block_bytes(spec, length, length)
            for part in batches(len(rows), row_bytes):
                chosen = rows[part]
                yield Batch(
                    base=base.tokens[chosen],
                    source=source.tokens[chosen],
                    answers=group.clean.answers[chosen],
                    corrupt_answers=group.corrupt.answers[chosen],
                    position=place,
                    index=group.index[chosen],
                )


def resolve_position(
    position: str | int, named: Mapping[str, Int[Tensor, " pair"]], length: int
) -> Int[Tensor, " pair"]:
    """The patched position of each pair.

    Raises:
        MechnumError: on an unknown name, and on an index outside the prompt.
    """
    if isinstance(position, bool) or not isinstance(position, str | int):
        raise MechnumError(f"{position!r} is no position: use a name or an index")
    if isinstance(position, str):
        if position not in named:
            raise MechnumError(
                f"the prompts have no position {position!r}: use one of {', '.join(named)} "
                "or an index"
            )
        return named[position]
    if not -length <= position < length:
        raise MechnumError(f"position {position} is outside prompts of {length} tokens")
    return torch.full_like(named["end"], position % length)


def _dataset(
    total: np.ndarray, direct: np.ndarray, scores: dict[str, np.ndarray], nodes: NodeKind
) -> xr.Dataset:
    dims = ("pair", "layer", "head")
    if nodes != "heads":
        total, direct, dims = total[..., 0], direct[..., 0], dims[:2]
    coords = {dim: np.arange(size) for dim, size in zip(dims, total.shape, strict=True)}
    return xr.Dataset(
        {
            "total": (dims, total),
            "direct": (dims, direct),
            "indirect": (dims, total - direct),
            "clean_metric": ("pair", scores["clean"]),
            "corrupt_metric": ("pair", scores["corrupt"]),
        },
        coords,
    )
