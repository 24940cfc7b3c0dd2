"""A second decoder, in plain numpy and float64, in which any value and any input can be edited.

It takes a wrapped model's weights, spec and rotary angles as data and shares no code with
`mechnum.models.decoder` or the patching engine. Every head is computed by itself and nothing is
saved or skipped, so that it can be checked by reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy import ndarray as Array
from scipy.special import erf, expit

from mechnum.patching.nodes import Node

# What a node computed → what goes on instead.
Value = Callable[[Array], Array]
_EMBED, _LOGITS = Node("embed"), Node("logits")


@dataclass(frozen=True)
class Trace:
    """What one forward computed.

    Attributes:
        values: of every node that writes, [pair, pos, …]: heads hold z, neurons their activation
            after any gate, q and k are not rotated, pattern is [pair, pos, key].
        inputs: the residual that each receiver read, before its norm, [pair, pos, d_model].
        logits: [pair, pos, vocab].
    """

    values: dict[Node, Array] = field(default_factory=dict)
    inputs: dict[Node, Array] = field(default_factory=dict)
    logits: Array = field(default_factory=lambda: np.empty(0))


# The residual at a receiver, and what the run has computed so far → what the receiver reads.
Read = Callable[[Array, Trace], Array]


class Plain:
    """The forward of a wrapped model."""

    def __init__(self, model: Any) -> None:
        self.spec = model.spec
        self.weights = _as_numpy(model.decoder.weights)
        self.cos, self.sin = _angles(model.decoder.rotary, model.spec)

    def run(
        self,
        tokens: Array,
        values: Mapping[Node, Value] | None = None,
        reads: Mapping[Node, Read] | None = None,
        scales: Mapping[Node, Array] | None = None,
    ) -> Trace:
        """One forward of tokens [pair, pos].

        Args:
            values: node → what becomes of its value.
            reads: receiver → what becomes of the residual that it reads (before its norm).
            scales: receiver → what its norm multiplies the centred residual by, instead of one over
                that residual's own root mean square.
        """
        return _Forward(self, values or {}, reads or {}, scales or {}).run(tokens)

    def norm_of(self, receiver: Node) -> tuple[str | None, Any]:
        """Kind and weights of the norm through which a receiver reads."""
        if receiver.layer is None:
            return self.spec.final_norm, self.weights["ln_final"]
        half = "ln2" if receiver.kind in ("mlp_in", "neuron_in") else "ln1"
        return self.spec.norm, self.weights["blocks"][receiver.layer][half]

    def scale(self, receiver: Node, resid: Array) -> Array:
        """One over the root mean square of what the norm divides."""
        kind, _ = self.norm_of(receiver)
        if kind is None:
            return np.ones_like(resid[..., :1])
        if kind == "layer":
            resid = resid - resid.mean(-1, keepdims=True)
        return 1 / np.sqrt((resid**2).mean(-1, keepdims=True) + self.spec.norm_eps)

    def normed(self, receiver: Node, resid: Array, scale: Array | None) -> Array:
        """What a receiver's weights multiply."""
        kind, weights = self.norm_of(receiver)
        if kind is None:
            return resid
        factor = self.scale(receiver, resid) if scale is None else scale
        if kind == "layer":
            resid = resid - resid.mean(-1, keepdims=True)
        normed = resid * factor
        if weights["w"] is not None:
            normed = normed * weights["w"]
        return normed if weights["b"] is None else normed + weights["b"]

    def rotated(self, x: Array) -> Array:
        """Queries or keys [pair, pos, d_head] turned by their positions' angles."""
        if self.cos is None or self.sin is None:
            return x
        turned = x.copy()
        n_turned = self.cos.shape[1]
        for pair in range(n_turned):
            adjacent = self.spec.rotary == "adjacent"
            one, other = (2 * pair, 2 * pair + 1) if adjacent else (pair, pair + n_turned)
            cos, sin = self.cos[: x.shape[1], pair], self.sin[: x.shape[1], pair]
            turned[..., one] = x[..., one] * cos - x[..., other] * sin
            turned[..., other] = x[..., other] * cos + x[..., one] * sin
        return turned


class _Forward:
    """One run with its edits."""

    def __init__(
        self,
        net: Plain,
        values: Mapping[Node, Value],
        reads: Mapping[Node, Read],
        scales: Mapping[Node, Array],
    ) -> None:
        self.net, self.edits, self.reads, self.scales = net, values, reads, scales
        self.trace = Trace()

    def keep(self, node: Node, value: Array) -> Array:
        if node in self.edits:
            value = self.edits[node](value)
        self.trace.values[node] = value
        return value

    def read(self, receiver: Node, resid: Array) -> Array:
        """The residual that a receiver reads."""
        if receiver in self.reads:
            resid = self.reads[receiver](resid, self.trace)
        self.trace.inputs[receiver] = resid
        return resid

    def read_normed(self, receiver: Node, resid: Array) -> Array:
        return self.net.normed(receiver, self.read(receiver, resid), self.scales.get(receiver))

    def run(self, tokens: Array) -> Trace:
        weights, spec = self.net.weights, self.net.spec
        resid = weights["W_E"][tokens]
        if weights["W_pos"] is not None:
            resid = resid + weights["W_pos"][: tokens.shape[1]]
        resid = self.keep(_EMBED, resid)
        for layer in range(spec.n_layers):
            before = resid = self.keep(Node("resid_pre", layer), resid)
            resid = resid + self.attention(layer, resid)
            if not spec.parallel:
                before = resid = self.keep(Node("resid_mid", layer), resid)
            if spec.d_mlp:
                resid = resid + self.mlp(layer, before)
            resid = self.keep(Node("resid_post", layer), resid)
        logits = _affine(self.read_normed(_LOGITS, resid), weights["W_U"], weights["b_U"])
        return Trace(self.trace.values, self.trace.inputs, logits)

    def attention(self, layer: int, resid: Array) -> Array:
        spec, weights = self.net.spec, self.net.weights["blocks"][layer]["attn"]
        keys, values = [], []
        for group in range(spec.n_kv_heads):
            for node, kept in ((Node("k", layer, group), keys), (Node("v", layer, group), values)):
                W, b = weights[f"W_{node.kind.upper()}"], weights[f"b_{node.kind.upper()}"]
                normed = self.read_normed(node, resid)
                kept.append(self.keep(node, _affine(normed, W[group], _part(b, group))))
        out = np.zeros_like(resid) if weights["b_O"] is None else weights["b_O"]
        for head in range(spec.n_heads):
            group = head * spec.n_kv_heads // spec.n_heads
            node = Node("q", layer, head)
            normed = self.read_normed(node, resid)
            query = _affine(normed, weights["W_Q"][head], _part(weights["b_Q"], head))
            query, key = self.net.rotated(self.keep(node, query)), self.net.rotated(keys[group])
            scores = np.einsum("bid,bjd->bij", query, key) / np.sqrt(spec.d_head)
            later = np.triu(np.ones(scores.shape[1:], dtype=bool), 1)
            pattern = _softmax(np.where(later, -np.inf, scores))
            pattern = self.keep(Node("pattern", layer, head), pattern)
            z = self.keep(
                Node("head", layer, head), np.einsum("bij,bjd->bid", pattern, values[group])
            )
            out = out + z @ weights["W_O"][head]
        return self.keep(Node("attn", layer), out)

    def mlp(self, layer: int, resid: Array) -> Array:
        weights = self.net.weights["blocks"][layer]["mlp"]
        shared = self.read(Node("mlp_in", layer), resid)
        # A scale that is frozen for the MLP is frozen for each of its neurons.
        scale = self.scales.get(Node("mlp_in", layer))
        hidden = self.activations(weights, self.net.normed(Node("mlp_in", layer), shared, scale))
        columns = []
        for neuron in range(self.net.spec.d_mlp):
            node = Node("neuron_in", layer, neuron)
            activation = hidden[..., neuron]
            own = self.read(node, shared)
            if node in self.reads:
                normed = self.net.normed(node, own, self.scales.get(node, scale))
                activation = self.activations(weights, normed, slice(neuron, neuron + 1))[..., 0]
            columns.append(self.keep(Node("neuron", layer, neuron), activation))
        out = _affine(np.stack(columns, -1), weights["W_out"], weights["b_out"])
        return self.keep(Node("mlp", layer), out)

    def activations(self, weights: Any, normed: Array, neurons: slice = slice(None)) -> Array:
        activation = _ACTIVATIONS[self.net.spec.activation]
        up = _affine(normed, weights["W_in"][:, neurons], _part(weights["b_in"], neurons))
        if weights["W_gate"] is None:
            return activation(up)
        gate = _affine(normed, weights["W_gate"][:, neurons], _part(weights["b_gate"], neurons))
        return activation(gate) * up


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * expit(x),
}


def _softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def _affine(x: Array, weight: Array, bias: Array | None) -> Array:
    return x @ weight if bias is None else x @ weight + bias


def _part(bias: Array | None, index: int | slice) -> Array | None:
    return None if bias is None else bias[index]


def _as_numpy(weights: Any) -> Any:
    """Weights as nested dictionaries of float64 arrays, under the names that they have."""
    if weights is None:
        return None
    if isinstance(weights, torch.Tensor):
        return weights.detach().double().numpy().copy()
    if isinstance(weights, tuple):
        return [_as_numpy(part) for part in weights]
    return {name: _as_numpy(part) for name, part in vars(weights).items()}


def _angles(rotary: Any, spec: Any) -> tuple[Array | None, Array | None]:
    """Cosines and sines [pos, pair] as the wrapped model rounds them."""
    if rotary is None:
        return None, None
    if hasattr(rotary, "cos"):
        return rotary.cos.double().numpy(), rotary.sin.double().numpy()
    positions = torch.arange(spec.n_ctx, dtype=rotary.inv_freq.dtype)
    angles = positions[:, None] * rotary.inv_freq[None, :]
    cos, sin = angles.cos() * rotary.scaling, angles.sin() * rotary.scaling
    return cos.double().numpy(), sin.double().numpy()
