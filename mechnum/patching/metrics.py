"""What a run is scored by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.memory import batches

MetricName = Literal["logit_diff", "logprob", "prob", "logit"]

# From what the final norm gives, one row for each pair, to one number for each.
Metric = Callable[[Float[Tensor, "*stack pair d_model"]], Float[Tensor, "*stack pair"]]

WARNINGS = {
    "logit": "a raw logit also moves when all logits shift together: compare with logit_diff",
}


def metric(
    decoder: Decoder,
    name: MetricName,
    answers: Int[Tensor, " pair"],
    corrupt_answers: Int[Tensor, " pair"],
) -> Metric:
    """The metric `name` for these pairs, on states after the final norm.

    - `logit_diff`: logit of the clean answer minus logit of the corrupt answer.
    - `logprob`, `prob`: of the clean answer, over the whole vocabulary, whose logits they need.
    - `logit`: of the clean answer (Kantamneni & Tegmark 2025, section 4). Folding and centring of
      the unembedding change it.

    Raises:
        MechnumError: on another name.
    """
    answers, corrupt_answers = answers.to(decoder.device), corrupt_answers.to(decoder.device)
    if name == "logit_diff":
        return lambda normed: (
            answer_logits(decoder, normed, answers)
            - answer_logits(decoder, normed, corrupt_answers)
        )
    if name == "logit":
        return lambda normed: answer_logits(decoder, normed, answers)
    if name == "logprob":
        return lambda normed: _logprob(decoder, normed, answers)
    if name == "prob":
        return lambda normed: _logprob(decoder, normed, answers).exp()
    raise MechnumError(f"unknown metric {name!r}: use one of {', '.join(get_args(MetricName))}")


def answer_logits(
    decoder: Decoder,
    normed: Float[Tensor, "*stack pair d_model"],
    answers: Int[Tensor, " pair"],
) -> Float[Tensor, "*stack pair"]:
    """One logit for each pair: only the columns of W_U that are read are touched."""
    columns = decoder.weights.W_U[:, answers].to(normed.dtype)
    logits = torch.einsum("...pd,dp->...p", normed, columns)
    bias = decoder.weights.b_U
    return logits if bias is None else logits + bias[answers].to(normed.dtype)


def _logprob(
    decoder: Decoder,
    normed: Float[Tensor, "*stack pair d_model"],
    answers: Int[Tensor, " pair"],
) -> Float[Tensor, "*stack pair"]:
    rows = normed.reshape(-1, normed.shape[-1])
    sums = [
        decoder.unembed(rows[part]).logsumexp(-1)
        for part in batches(len(rows), 8 * decoder.spec.d_vocab_out)
    ]
    return answer_logits(decoder, normed, answers) - torch.cat(sums).view(normed.shape[:-1])
