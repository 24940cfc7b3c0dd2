"""Overwriting the residual stream itself with values of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.models.run import run
from mechnum.patching.batches import Batch, Direction, pair_batches
from mechnum.patching.metrics import Metric, MetricName
from mechnum.patching.propagate import Patches, propagate, state_at, states_for
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs


def patch_residual(
    model: Model,
    pairs: Pairs,
    values: Float[Tensor, "layer method pair d_model"],
    layers: Sequence[int],
    position: str | int = "end",
    metric_name: MetricName = "logit_diff",
    direction: Direction = "denoise",
) -> Float[np.ndarray, "layer method pair"]:
    """Effect of overwriting the embedding, or the state after a layer, at one position.

    The base run is run once for all layers and values; from the overwritten state on, everything
    is recomputed (Kantamneni & Tegmark 2025, section 4: h_l after layer l).

    Args:
        values: what is put in the state's place, in the order of the pairs' `index`.
        layers: the layer after which each entry of the first axis is put, −1 for the embedding.
        direction: "denoise" overwrites in the corrupt run, "noise" in the clean one.

    Returns:
        Metric after overwriting minus metric of the base run, float64.

    Raises:
        MechnumError: on values of another shape, and on layers and positions that do not exist.
    """
    expected = (len(layers), values.shape[1], len(pairs), model.spec.d_model)
    if values.shape != expected:
        raise MechnumError(
            f"values of shape {tuple(values.shape)} do not fit {expected}: "
            "give them as [layer, method, pair, d_model]"
        )
    outside = [layer for layer in layers if not -1 <= layer < model.spec.n_layers]
    if outside:
        raise MechnumError(
            f"layer {outside[0]} does not exist: {model.name} has layers −1 (the embedding) to "
            f"{model.spec.n_layers - 1}"
        )
    pairs.check_fits(model)
    decoder = model.decoder
    scores = np.full(expected[:3], np.nan)
    parts = list(pair_batches(model, pairs, position, direction, states_for(decoder)))
    for batch in track(parts, "overwriting states"):
        with exact(model.device):
            found = _overwrite(decoder, batch, values, layers, metric_name)
        scores[..., batch.index.numpy()] = found.double().cpu().numpy()
    return scores


def _overwrite(
    decoder: Decoder,
    batch: Batch,
    values: Float[Tensor, "layer method all d_model"],
    layers: Sequence[int],
    metric_name: MetricName,
) -> Float[Tensor, "layer method pair"]:
    """The effects in one batch."""
    base = run(decoder, batch.base, states_for(decoder), start=batch.position)
    metric = Metric(decoder, metric_name, batch.answers, batch.corrupt_answers)

    def score(last: Float[Tensor, "*row pair d_model"]) -> Float[Tensor, "*row pair"]:
        return metric(decoder.final_norm(last))

    def overwriting(
        layer: int, own: Float[Tensor, "method all d_model"], methods: slice
    ) -> Float[Tensor, "method pair pos d_model"]:
        state = state_at(base, 2 * (layer + 1))
        wanted = own[methods][:, batch.index].to(decoder.device)
        delta = torch.zeros(len(wanted), *state.shape, dtype=wanted.dtype, device=wanted.device)
        delta[:, :, 0] = wanted - state[:, 0].to(wanted.dtype)
        return delta

    patches = [
        Patches(2 * (layer + 1), len(own), partial(overwriting, layer, own))
        for layer, own in zip(layers, values, strict=True)
    ]
    return torch.stack(propagate(decoder, base, patches, score)) - score(base.last[:, -1])
