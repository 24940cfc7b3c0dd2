"""Gradient estimates of edges: what a sender's write would do through one receiver's input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.models.memory import batches
from mechnum.models.spec import ModelSpec
from mechnum.patching.attribution.gradient_runs import gradient_runs
from mechnum.patching.attribution.gradients import GradientRuns, last_gradient, layer_gradients
from mechnum.patching.attribution.input_gradients import input_gradients
from mechnum.patching.attribution.sender_products import SenderProducts, sender_groups
from mechnum.patching.local import Place
from mechnum.patching.measure import Scorer
from mechnum.patching.nodes import Node, NodeGroup
from mechnum.patching.path.matrix import receiver_groups


class EdgeAttribution:
    """The first-order estimates of the path effects of the variant "edge" of single nodes.

    The sender's difference is exact, as `mechnum.path_effects` has it; the gradient stands for all
    that follows.

    Args:
        wanted: which edges are possible; the others stay NaN.
        ig_steps: points whose gradients are averaged; None for that of the base run.
    """

    def __init__(
        self,
        senders: Sequence[Node],
        receivers: Sequence[Node],
        wanted: Bool[np.ndarray, "sender receiver"],
        ig_steps: int | None,
        spec: ModelSpec,
    ) -> None:
        self.wanted = torch.from_numpy(wanted)
        self.senders = sender_groups(senders, spec)
        self.receivers = receiver_groups(receivers, spec)
        self.ig_steps = ig_steps

    def at(self, place: Place, scorer: Scorer) -> dict[str, Float[Tensor, "edge pair"]]:
        """The whole matrix, senders first."""
        return {"estimate": self._tables([place], scorer)[0].flatten(0, 1)}

    def each(self, place: Place, scorer: Scorer) -> Iterator[dict[str, Float[Tensor, "edge pair"]]]:
        """The same for senders at every kept position, all from one gradient."""
        first = place.base.start
        places = [place.at(first + here) for here in range(place.base.last.shape[1])]
        for table in self._tables(places, scorer):
            yield {"estimate": table.flatten(0, 1)}

    def _tables(
        self, places: Sequence[Place], scorer: Scorer
    ) -> Float[Tensor, "place sender receiver pair"]:
        shape = (len(places), *self.wanted.shape, len(scorer.last))
        tables = torch.zeros(shape, dtype=torch.float64)
        tables[:, ~self.wanted] = torch.nan
        first = places[0].base.start
        written = SenderProducts(places, self.senders)
        for runs in gradient_runs(places[0], self.ig_steps):
            last = last_gradient(runs, scorer.metric)
            for point, columns, gradient in self._inputs(runs, last):
                # The runs may begin at an earlier position than the patch.
                of_kept = gradient[:, first - runs.start :]
                for index, rows, found in written.with_inputs(point, of_kept):
                    cells = torch.tensor(rows)[:, None], torch.tensor(columns)
                    tables[index][cells] += found.double().cpu()
        return tables

    def _inputs(
        self, runs: GradientRuns, last: Float[Tensor, "stack pair pos d_model"]
    ) -> Iterator[tuple[int, list[int], Float[Tensor, "pair pos part d_model"]]]:
        """Point, columns and gradients of the inputs of all receivers, some at a time."""
        for point, group in self.receivers:
            if group.kind == "logits":
                yield point, group.rows, (last.sum(0) * runs.share).unsqueeze(2)
        for found in layer_gradients(runs, last):
            own = [
                (point, group)
                for point, group in self.receivers
                if group.kind != "logits" and group.layer == found.layer
            ]
            for point, here in groupby(own, key=lambda item: item[0]):
                groups = [group for _, group in here]
                # What is stacked, what its norm makes of it, and the gradients of both.
                for portion in _portions(groups, 4 * 4 * last.numel()):
                    gradients = [
                        input_gradients(found, kind, parts)  # type: ignore[arg-type]  # not the logits
                        for kind, parts, _ in portion
                    ]
                    columns = [column for _, _, some in portion for column in some]
                    yield point, columns, torch.cat(gradients, dim=2)


def _portions(
    groups: Sequence[NodeGroup], part_bytes: int
) -> Iterator[list[tuple[str, list[int] | None, list[int]]]]:
    """Receivers of one point that fit the memory budget together: kinds, parts and columns."""
    every = [
        (group.kind, part, column)
        for group in groups
        for part, column in zip(group.parts or [None], group.rows, strict=True)
    ]
    for some in batches(len(every), part_bytes):
        portion = []
        for kind, found in groupby(every[some], key=lambda one: one[0]):
            _, parts, columns = zip(*found, strict=True)
            portion.append((kind, None if kind == "mlp_in" else list(parts), list(columns)))
        yield portion
