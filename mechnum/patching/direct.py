"""Direct effects: a difference that reaches the logits through the final norm and nothing else."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.memory import batches
from mechnum.models.norms import centred_for
from mechnum.patching.local import LocalDifference
from mechnum.patching.metrics import Metric

NormHandling = Literal["exact", "frozen"]


def check_norm(norm: str) -> None:
    """Refuses other norm handlings.

    Raises:
        MechnumError: on another.
    """
    if norm not in get_args(NormHandling):
        raise MechnumError(f"unknown norm handling {norm!r}: use 'exact' or 'frozen'")


def direct_effect(
    decoder: Decoder,
    last: Float[Tensor, "pair d_model"],
    difference: Float[Tensor, "*row pair d_model"],
    metric: Metric,
    norm: NormHandling,
) -> Float[Tensor, "*row pair"]:
    """Metric with `difference` added to the base run's last residual, minus the base metric.

    Args:
        last: last residual of the base run at the position that the metric reads.
        norm: "exact" recomputes the final norm, "frozen" keeps the base run's scale, which makes
            effects of single nodes add up.
    """
    last = last.to(difference.dtype)
    scale = decoder.final_scale(last) if norm == "frozen" else None
    patched = metric(decoder.final_norm(last + difference, scale))
    effect = patched - metric(decoder.final_norm(last, scale))
    # Rows and the base run are computed in different shapes, and so rounded differently.
    return effect.masked_fill((difference == 0).all(-1), 0.0)


def direct_effects(
    decoder: Decoder,
    last: Float[Tensor, "pair d_model"],
    local: LocalDifference,
    metric: Metric,
) -> dict[NormHandling, Float[Tensor, "row pair"]]:
    """`direct_effect` of each row of a local difference, at the last position, either way."""
    if local.of_neurons and metric.linear:
        assert local.directions is not None, "neurons write along directions"
        return of_directions(decoder, last, local.weights[:, -1], local.directions, metric)
    found: dict[NormHandling, list[Tensor]] = {"exact": [], "frozen": []}
    for rows in batches(local.n_rows, 4 * 4 * last.numel()):
        difference = local.write(rows, slice(-1, None))[:, :, 0]
        for norm, parts in found.items():
            parts.append(direct_effect(decoder, last, difference, metric, norm))
    return {norm: torch.cat(parts) for norm, parts in found.items()}


def of_directions(
    decoder: Decoder,
    last: Float[Tensor, "pair d_model"],
    weights: Float[Tensor, "pair row"],
    directions: Float[Tensor, "row d_model"],
    metric: Metric,
) -> dict[NormHandling, Float[Tensor, "row pair"]]:
    """`direct_effect` of `weights` × `directions` in closed form, for a linear metric.

    The norm and the metric need only the products of the direction w with the residual r, with
    itself and with the read-out u, centred where the norm centres: for δ = c·w the metric is
    (r + c w)·u / √(|r + c w|² / d + ε) and a constant. No difference of neurons is ever written
    out. The three products are float32 at least, what follows them is float64, since the effect of
    one neuron is a small difference.
    """
    spec = decoder.spec
    wide = torch.promote_types(last.dtype, torch.float32)
    precise = torch.float32 if last.is_mps else torch.float64
    read, _ = metric.readout(wide)
    gain = decoder.weights.ln_final.w
    if gain is not None and spec.final_norm is not None:
        read = read * gain.to(wide)
    r = centred_for(last, spec.final_norm)
    w = centred_for(directions, spec.final_norm)
    c = weights.T.to(precise)
    along_read, along_rest = (torch.cat([read, r]) @ w.T).T.to(precise).chunk(2, dim=1)
    base = (r * read).sum(-1).to(precise)
    scale = decoder.final_scale(last.to(wide))[:, 0].to(precise)
    frozen = c * along_read * scale
    if spec.final_norm is None:
        return {"exact": frozen, "frozen": frozen}
    size = w.square().sum(-1, keepdim=True).to(precise)
    grown = (2 * c * along_rest + c.square() * size) / spec.d_model
    # Computed alike on both sides, so that an equal value changes exactly nothing.
    before = scale.square().reciprocal()
    patched = torch.rsqrt(before + grown)
    change = patched - torch.rsqrt(before)
    return {"exact": c * along_read * patched + base * change, "frozen": frozen}
