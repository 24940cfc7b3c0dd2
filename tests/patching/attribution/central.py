"""Derivatives of the metric by central differences in numpy: the reference for gradients.

A step of ±ε of the whole patch, and nothing of autograd: the estimate of a patch is the derivative
of the metric along it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray as Array

from mechnum.patching.nodes import Node
from tests.patching.plain import Read, Trace, Value
from tests.patching.rerun import Rerun

EPSILON = 1e-4
EMBED = Node("embed")


class Central(Rerun):
    """Of the pairs of `Rerun`, at the base run or at runs between the two prompts."""

    def node(self, node: Node, position: int | None = None, ig_steps: int | None = None) -> Array:
        """d(metric)/dε [pair] with the node at base value + ε × (source value − base value)."""
        at = self._at(position)
        kinds = ("k", "v") if node.kind == "kv" else (node.kind,)
        parts = [Node(kind, node.layer, node.index) for kind in kinds]

        def edited(start: Array | None, step: float) -> Trace:
            values: dict[Node, Value] = {} if start is None else {EMBED: lambda _live: start}
            for one in parts:
                change = self.source.values[one] - self.base.values[one]
                change = change * at.reshape(1, -1, *(1,) * (change.ndim - 2))
                values[one] = _stepped(values.get(one), step * change)
            return self.net.run(self.base_tokens, values=values)

        return self._mean(edited, ig_steps)

    def edge_estimate(
        self,
        sender: Node,
        receiver: Node,
        position: int | None = None,
        ig_steps: int | None = None,
    ) -> Array:
        """d(metric)/dε [pair] with ε × the sender's difference in the receiver's input alone."""
        change = self.difference(sender, position)

        def edited(start: Array | None, step: float) -> Trace:
            values: dict[Node, Value] = {} if start is None else {EMBED: lambda _live: start}
            read: Read = lambda resid, _trace: resid + step * change  # noqa: E731
            return self.net.run(self.base_tokens, values=values, reads={receiver: read})

        return self._mean(edited, ig_steps)

    def _mean(self, edited: Any, ig_steps: int | None) -> Array:
        slopes = []
        for start in self._starts(ig_steps):
            up, down = (self.score(edited(start, sign * EPSILON)) for sign in (1, -1))
            slopes.append((up - down) / (2 * EPSILON))
        return np.mean(slopes, axis=0)

    def _starts(self, ig_steps: int | None) -> Iterator[Array | None]:
        """Embeddings from the source prompt's on, the base prompt's left out."""
        if ig_steps is None:
            yield None
            return
        base, source = self.base.values[EMBED], self.source.values[EMBED]
        for k in range(ig_steps):
            yield source + k / ig_steps * (base - source)


def _stepped(before: Value | None, change: Array) -> Value:
    return lambda live: (live if before is None else before(live)) + change
