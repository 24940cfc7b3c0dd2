"""Direct effects: a difference that reaches the logits through the final norm and nothing else."""

from __future__ import annotations

from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.patching.metrics import Metric

NormHandling = Literal["exact", "frozen"]


def direct_effect(
    decoder: Decoder,
    last: Float[Tensor, "pair d_model"],
    difference: Float[Tensor, "node pair d_model"],
    metric: Metric,
    norm: NormHandling,
) -> Float[Tensor, "node pair"]:
    """Metric with `difference` added to the base run's last residual, minus the base metric.

    Args:
        last: last residual of the base run at the position that the metric reads.
        norm: "exact" recomputes the final norm, "frozen" keeps the base run's scale, which makes
            effects of single nodes add up.

    Raises:
        MechnumError: on another norm handling.
    """
    if norm not in get_args(NormHandling):
        raise MechnumError(f"unknown norm handling {norm!r}: use 'exact' or 'frozen'")
    last = last.to(difference.dtype)
    scale = decoder.final_scale(last) if norm == "frozen" else None
    patched = metric(decoder.final_norm(last + difference, scale))
    return patched - metric(decoder.final_norm(last))
