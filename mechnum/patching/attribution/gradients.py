"""Gradients of the metric with respect to every state of a run, from the last layer to the first.

Each block is run again with gradients and let go before the next, so that one layer's graph is all
that is ever held. The gradient of the residual stream is carried from block to block in float32 at
least, whatever the precision of the body; no parameter takes part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import Decoder, KeysValues, StateName
from mechnum.models.exact import differentiable
from mechnum.models.memory import batches
from mechnum.patching.metrics import Metric


@dataclass(frozen=True)
class GradientRuns:
    """Runs of the same pairs, stacked, along which gradients are taken.

    Attributes:
        start: position of the first entry.
        inputs: what enters each layer.
        last: the last residual.
        past: each layer's keys and values before `start`, which all runs share.
        share: of each run in the mean gradient.
    """

    decoder: Decoder
    start: int
    inputs: Sequence[Float[Tensor, "stack pair pos d_model"]]
    last: Float[Tensor, "stack pair pos d_model"]
    past: Sequence[KeysValues | None]
    share: float

    @property
    def wide(self) -> torch.dtype:
        """Of gradients between blocks."""
        return torch.promote_types(self.decoder.dtype, torch.float32)


@dataclass(frozen=True)
class LayerGradients:
    """∂metric/∂state of one layer, all that follows the state taken into account.

    Attributes:
        states: [stack, pair, pos, …], the states as `mechnum.patching.values.kept` has them.
        mlp_input: of what the MLP reads, through the MLP alone; None without one.
        mlp_reads: what the MLP reads, before its norm.
    """

    runs: GradientRuns
    layer: int
    states: dict[StateName, Float[Tensor, "stack pair pos ..."]]
    mlp_input: Float[Tensor, "stack pair pos d_model"] | None
    mlp_reads: Float[Tensor, "stack pair pos d_model"]

    def mean(self, name: StateName) -> Float[Tensor, "pair pos ..."]:
        """These runs' part of the mean gradient of a state."""
        return self.states[name].sum(0) * self.runs.share


def last_gradient(runs: GradientRuns, metric: Metric) -> Float[Tensor, "stack pair pos d_model"]:
    """∂metric/∂(last residual), which the metric reads at the last position."""
    read = runs.last[:, :, -1]
    with differentiable(read.device):
        leaf = read.to(runs.wide).detach().requires_grad_()
        normed = runs.decoder.final_norm(leaf)
        (found,) = torch.autograd.grad(normed, leaf, metric_gradient(metric, normed.detach()))
    gradient = torch.zeros_like(runs.last, dtype=runs.wide)
    gradient[:, :, -1] = found
    return gradient


@torch.no_grad()
def metric_gradient(
    metric: Metric, normed: Float[Tensor, "*stack pair d_model"]
) -> Float[Tensor, "*stack pair d_model"]:
    """∂metric/∂normed in closed form, without a graph over the vocabulary.

    The gradient of a log-probability is the answer's column of W_U minus the mean column under the
    model's own probabilities.
    """
    column, _ = metric.readout(normed.dtype)
    if metric.linear:
        return column.expand_as(normed)
    decoder = metric.decoder
    rows = normed.reshape(-1, normed.shape[-1])
    mean = torch.zeros_like(rows)
    for part in batches(len(rows), 8 * decoder.spec.d_vocab_out):
        probabilities = decoder.unembed(rows[part]).softmax(-1)
        for tokens in torch.arange(probabilities.shape[1], device=rows.device).split(8192):
            columns = decoder.weights.W_U[:, tokens].to(rows.dtype)
            mean[part] += probabilities[:, tokens] @ columns.T
    change = column - mean.view_as(normed)
    return change if metric.name == "logprob" else metric(normed).unsqueeze(-1) * change


def layer_gradients(
    runs: GradientRuns, gradient: Float[Tensor, "stack pair pos d_model"]
) -> Iterator[LayerGradients]:
    """The gradients of each layer, from the last to the first.

    Args:
        gradient: of the last residual.
    """
    for layer in reversed(range(runs.decoder.spec.n_layers)):
        found = _through_block(runs, layer, gradient)
        gradient = found.states["resid_pre"]
        yield found


def _through_block(
    runs: GradientRuns, layer: int, gradient: Float[Tensor, "stack pair pos d_model"]
) -> LayerGradients:
    """From the residual stream after a layer to the one before it."""
    decoder, resid = runs.decoder, runs.inputs[layer]
    states: dict[StateName, Tensor] = {"resid_post": gradient}
    with differentiable(resid.device):
        read = resid.detach().requires_grad_()
        attention = decoder.attention(layer, read, runs.past[layer])
        mid = resid if decoder.spec.parallel else resid + attention.out.detach()
        mlp_input = None
        if decoder.spec.d_mlp:
            states["mlp_out"] = gradient
            mlp_input, states["mlp_hidden"] = _through_mlp(decoder, layer, mid, gradient)
        after = gradient
        if not decoder.spec.parallel:
            after = gradient if mlp_input is None else gradient + mlp_input
            states["resid_mid"] = after
        states["attn_out"] = after
        inputs = (read, attention.q, attention.k, attention.v, attention.pattern, attention.z)
        attn_input, q, k, v, pattern, z = pulled_back(attention.out, inputs, after)
    states |= {"q": q, "k": k, "v": v, "pattern": pattern.transpose(2, 3), "z": z}
    before = after + attn_input
    if decoder.spec.parallel and mlp_input is not None:
        before = before + mlp_input
    states["resid_pre"] = before
    return LayerGradients(runs, layer, states, mlp_input, mid)


def _through_mlp(
    decoder: Decoder,
    layer: int,
    mid: Float[Tensor, "stack pair pos d_model"],
    gradient: Float[Tensor, "stack pair pos d_model"],
) -> tuple[Float[Tensor, "stack pair pos d_model"], Float[Tensor, "stack pair pos neuron"]]:
    """Of the MLP's input and of its activations."""
    read = mid.detach().requires_grad_()
    hidden = decoder.mlp_hidden(layer, decoder.mlp_norm(layer, read))
    of_input, of_hidden = pulled_back(decoder.mlp_out(layer, hidden), (read, hidden), gradient)
    return of_input, of_hidden


def pulled_back(
    output: Float[Tensor, "stack pair ..."],
    inputs: tuple[Tensor, ...],
    gradient: Float[Tensor, "stack pair ..."],
) -> list[Float[Tensor, "stack pair ..."]]:
    """The vector-Jacobian products of `gradient` with respect to `inputs`, in its own precision.

    They are linear in the gradient, which is brought near 1 on its way, by a power of two that
    rounds nothing: what is small for float16, as the gradient of a small probability, is not lost.
    """
    largest = gradient.flatten(2).abs().amax(2)
    exponent = torch.frexp(largest).exponent
    one = torch.ones_like(largest)
    down, up = torch.ldexp(one, -exponent), torch.ldexp(one, exponent)
    given = (gradient * _wide_as(down, gradient)).to(output.dtype)
    found = torch.autograd.grad(output, inputs, given)
    return [one.to(gradient.dtype) * _wide_as(up, one) for one in found]


def _wide_as(rows: Float[Tensor, "stack pair"], like: Tensor) -> Tensor:
    return rows.view(*rows.shape, *[1] * (like.ndim - 2))
