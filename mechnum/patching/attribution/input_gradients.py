"""Gradients of the metric with respect to what each receiver reads, before its norm."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.exact import differentiable
from mechnum.patching.attribution.gradients import LayerGradients, pulled_back
from mechnum.patching.path.receivers import ReceiverKind


def input_gradients(
    found: LayerGradients, kind: ReceiverKind, parts: Sequence[int] | None
) -> Float[Tensor, "pair pos part d_model"]:
    """These runs' part of the mean gradient of the inputs of receivers of one kind in one layer.

    Each receiver is taken to read an input of its own, as in `mechnum.path_effects`: what the
    gradient of its queries, keys, values or activations is, pulled back through its weights, the
    rotation and the norm.

    Args:
        parts: heads, groups or neurons; None for a whole MLP.
    """
    runs = found.runs
    if kind == "mlp_in":
        assert found.mlp_input is not None, "nodes are checked against the model"
        return (found.mlp_input.sum(0) * runs.share).unsqueeze(2)
    assert parts is not None, "the other receivers are parts of a layer"
    chosen = torch.tensor(parts, device=runs.last.device)
    if kind == "neuron_in":
        of_normed = _of_neurons(found, chosen)
        stream, norm = found.mlp_reads, runs.decoder.mlp_norm
    else:
        of_normed = _of_projections(found, kind, chosen)
        stream, norm = runs.inputs[found.layer], runs.decoder.attn_norm
    with differentiable(stream.device):
        read = stream.to(runs.wide).unsqueeze(3).expand_as(of_normed).detach().requires_grad_()
        (gradient,) = pulled_back(norm(found.layer, read), (read,), of_normed)
    return gradient.sum(0) * runs.share


def _of_projections(
    found: LayerGradients, kind: ReceiverKind, chosen: Tensor
) -> Float[Tensor, "stack pair pos part d_model"]:
    """What queries, keys or values give back to the norm's output, each part alone."""
    decoder = found.runs.decoder
    gradient = found.states["q" if kind == "q" else "k" if kind == "k" else "v"][..., chosen, :]
    if kind != "v":
        # A rotation's transpose turns back.
        gradient = decoder.rotated(gradient, found.runs.start, back=True)
    attn = decoder.weights.blocks[found.layer].attn
    weight = {"q": attn.W_Q, "k": attn.W_K, "v": attn.W_V}[kind][chosen]
    return torch.einsum("sptgd,gmd->sptgm", gradient, weight.to(gradient.dtype))


def _of_neurons(
    found: LayerGradients, chosen: Tensor
) -> Float[Tensor, "stack pair pos part d_model"]:
    """What neurons give back to the norm's output, each alone."""
    decoder, layer = found.runs.decoder, found.layer
    mlp = decoder.weights.blocks[layer].mlp
    assert mlp is not None, "nodes are checked against the model"
    normed = decoder.mlp_norm(layer, found.mlp_reads)
    weights = [mlp.W_in] if mlp.W_gate is None else [mlp.W_in, mlp.W_gate]
    with differentiable(normed.device):
        given = decoder.pre_activations(layer, normed.detach(), chosen)
        read = tuple(one.detach().requires_grad_() for one in given if one is not None)
        activations = decoder.activated(*read, *[None] * (2 - len(read)))
        of_read = pulled_back(activations, read, found.states["mlp_hidden"][..., chosen])
    parts = [
        one.unsqueeze(-1) * weight[:, chosen].T.to(one.dtype)
        for one, weight in zip(of_read, weights, strict=True)
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]
