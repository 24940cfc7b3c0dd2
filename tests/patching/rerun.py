"""Effects by rerunning the whole model with one explicit edit: slow, and right by inspection.

The reference for the patching engine. It follows the definitions of the estimands word by word on
`tests.patching.plain`, for every kind of node and edge, for one position or all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal

import numpy as np
from numpy import ndarray as Array

from mechnum.patching.edges import Edge
from mechnum.patching.nodes import Node, Target, members
from tests.patching.plain import Plain, Read, Trace, Value

Norm = Literal["exact", "frozen"]
LOGITS = Node("logits")


class Rerun:
    """Pairs of one token count: the base run that is edited, and the source run of its values.

    Args:
        model: a wrapped model; its weights are data here, its forward is not used.
        pairs: in one group.
        direction: "denoise" edits the corrupt run with clean values, "noise" the reverse.
        metric: "logit_diff", "logit", "logprob" or "prob", at the last position.
    """

    def __init__(
        self, model: Any, pairs: Any, direction: str = "denoise", metric: str = "logit_diff"
    ) -> None:
        (group,) = pairs.groups
        self.net = Plain(model)
        self.metric = metric
        self.answers = group.clean.answers.numpy()
        self.corrupt_answers = group.corrupt.answers.numpy()
        clean, corrupt = group.clean.tokens.numpy(), group.corrupt.tokens.numpy()
        denoise = direction == "denoise"
        self.base_tokens, self.source_tokens = (corrupt, clean) if denoise else (clean, corrupt)
        self.base = self.net.run(self.base_tokens)
        self.source = self.net.run(self.source_tokens)

    def score(self, trace: Trace) -> Array:
        """The metric of each pair, [pair]."""
        logits, rows = trace.logits[:, -1], np.arange(len(self.answers))
        if self.metric == "logit_diff":
            return logits[rows, self.answers] - logits[rows, self.corrupt_answers]
        if self.metric == "logit":
            return logits[rows, self.answers]
        highest = logits.max(-1)
        summed = np.log(np.exp(logits - highest[:, None]).sum(-1)) + highest
        logprob = logits[rows, self.answers] - summed
        return logprob if self.metric == "logprob" else np.exp(logprob)

    def total(self, target: Target, position: int | None = None) -> Array:
        """Total effect [pair]: the nodes' values replaced in one run, all after them recomputed.

        Args:
            position: of the patch, negative ones from the end; None patches all.
        """
        return self.score(self._patched(target, position)) - self.score(self.base)

    def direct(self, target: Target, position: int | None = None, norm: Norm = "exact") -> Array:
        """Direct effect [pair]: the difference of the write, added to the last residual only."""
        return self.edge(target, LOGITS, position, norm)

    def edge(
        self,
        sender: Target,
        receiver: Target,
        position: int | None = None,
        norm: Norm = "exact",
    ) -> Array:
        """Path effect [pair] of the variant `edge`; NaN where no receiver reads after a sender.

        Only the receivers' inputs get the sender's source value minus its base value; everything
        after the receivers is recomputed.

        Args:
            position: at which the sender's difference is taken and read; None for all.
            norm: "frozen" multiplies in the receiver's own norm by the base run's scale.
        """
        reads: dict[Node, Read] = {}
        for one in members(receiver):
            before = [node for node in members(sender) if self._precedes(node, one)]
            if before:
                reads[one] = _plus(sum(self.difference(node, position) for node in before))
        if not reads:
            return np.full(len(self.answers), np.nan)
        scales = {} if norm == "exact" else {one: self._base_scale(one) for one in reads}
        edited = self.net.run(self.base_tokens, reads=reads, scales=scales)
        return self.score(edited) - self.score(self.base)

    def path(
        self,
        sender: Target,
        receiver: Target,
        frozen: Collection[str] = ("heads", "mlps"),
        position: int | None = None,
    ) -> Array:
        """Path effect [pair] of the variant `path`.

        First run: the sender replaced, all other components of the kinds `frozen` at their base
        values. Second run: the receivers read what they read in the first, at all positions.
        """
        held: dict[Node, Value] = {}
        passing = {inner for node in members(sender) for inner in self._within(node)}
        for node in self._components(frozen):
            if node not in passing:
                held[node] = _constant(self.base.values[node])
        first = self._patched(sender, position, held)
        reads: dict[Node, Read] = {
            one: _constant_read(first.inputs[one]) for one in members(receiver)
        }
        return self.score(self.net.run(self.base_tokens, reads=reads)) - self.score(self.base)

    def kept(self, edges: Iterable[Edge], receivers: Iterable[Node]) -> Array:
        """The metric [pair] of the source run with only these edges: all others carry base values.

        Args:
            receivers: everything that reads; those without an edge read what the base run gave.
        """
        senders: dict[Node, list[Node]] = {receiver: [] for receiver in receivers}
        for edge in edges:
            senders[edge.receiver].append(edge.sender)

        def reading(receiver: Node) -> Read:
            def read(_resid: Array, trace: Trace) -> Array:
                resid = self.base.inputs[receiver]
                for node in senders[receiver]:
                    resid = resid + self.write(node, trace) - self.write(node, self.base)
                return resid

            return read

        reads = {receiver: reading(receiver) for receiver in senders}
        return self.score(self.net.run(self.source_tokens, reads=reads))

    def write(self, node: Node, trace: Trace) -> Array:
        """What a node adds to the residual stream, [pair, pos, d_model]; a residual is itself."""
        value = trace.values[node]
        if node.kind not in ("head", "neuron"):
            return value
        block = self.net.weights["blocks"][node.layer]
        if node.kind == "head":
            return value @ block["attn"]["W_O"][node.index]
        return value[..., None] * block["mlp"]["W_out"][node.index]

    def difference(self, node: Node, position: int | None = None) -> Array:
        """The node's write in the source run minus that in the base run, [pair, pos, d_model].

        Queries, keys, values and patterns write through their attention layer: theirs is what the
        layer writes differently when they alone are replaced, at whichever positions it does.
        """
        if node.kind in ("q", "k", "v", "kv", "pattern"):
            attn = Node("attn", node.layer)
            return self._patched(node, position).values[attn] - self.base.values[attn]
        difference = self.write(node, self.source) - self.write(node, self.base)
        return difference * self._at(position)[:, None]

    def _patched(
        self, target: Target, position: int | None, held: dict[Node, Value] | None = None
    ) -> Trace:
        at = self._at(position)
        values = dict(held or {})
        for node in members(target):
            # A group's keys and values are two states.
            kinds = ("k", "v") if node.kind == "kv" else (node.kind,)
            for kind in kinds:
                one = Node(kind, node.layer, node.index)
                values[one] = _replaced(self.source.values[one], at)
        return self.net.run(self.base_tokens, values=values)

    def _at(self, position: int | None) -> Array:
        """Which positions are patched, [pos]."""
        length = self.base_tokens.shape[1]
        if position is None:
            return np.ones(length, dtype=bool)
        return np.arange(length) == range(length)[position]

    def _base_scale(self, receiver: Node) -> Array:
        return self.net.scale(receiver, self.base.inputs[receiver])

    def _precedes(self, sender: Node, receiver: Node) -> bool:
        """Whether the receiver reads the residual stream after the sender wrote to it."""
        parallel = self.net.spec.parallel
        if sender.layer is None or receiver.layer is None:
            return True
        if sender.layer != receiver.layer:
            return sender.layer < receiver.layer
        if sender.kind == "resid_pre":
            return True
        in_mlp = receiver.kind in ("mlp_in", "neuron_in")
        sent_before_mlp = sender.kind not in ("mlp", "neuron", "resid_post")
        return in_mlp and sent_before_mlp and not parallel

    def _components(self, kinds: Collection[str]) -> list[Node]:
        """Heads and, for MLPs, their neurons: freezing all neurons freezes the MLP."""
        spec = self.net.spec
        found = []
        for layer in range(spec.n_layers):
            if "heads" in kinds:
                found += [Node("head", layer, head) for head in range(spec.n_heads)]
            if "mlps" in kinds:
                found += [Node("neuron", layer, neuron) for neuron in range(spec.d_mlp)]
        return found

    def _within(self, node: Node) -> set[Node]:
        """The heads or neurons through which a sender's new value must pass."""
        spec, layer, index = self.net.spec, node.layer, node.index
        if node.kind in ("q", "pattern") and index is not None:
            return {Node("head", layer, index)}
        if node.kind in ("k", "v", "kv") and index is not None:
            first = index * spec.heads_per_group
            return {Node("head", layer, first + one) for one in range(spec.heads_per_group)}
        return {node}


def _plus(delta: Any) -> Read:
    return lambda resid, _trace: resid + delta


def _constant(value: Array) -> Value:
    return lambda _live: value


def _constant_read(resid: Array) -> Read:
    return lambda _resid, _trace: resid


def _replaced(value: Array, at: Array) -> Value:
    """The new value at some positions and the live one elsewhere."""

    def replace(live: Array) -> Array:
        mask = at.reshape(1, -1, *(1,) * (live.ndim - 2))
        return np.where(mask, value, live)

    return replace
