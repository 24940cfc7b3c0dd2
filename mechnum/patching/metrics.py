"""What a run is scored by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.memory import batches

MetricName = Literal["logit_diff", "logprob", "prob", "logit"]

WARNINGS = {
    "logit": "a raw logit also moves when all logits shift together: compare with logit_diff",
}


@dataclass(frozen=True)
class Metric:
    """One number for each pair, from what the final norm gives.

    - `logit_diff`: logit of the clean answer minus logit of the corrupt answer.
    - `logprob`, `prob`: of the clean answer, over the whole vocabulary, whose logits they need.
    - `logit`: of the clean answer (Kantamneni & Tegmark 2025, section 4). Folding and centring of
      the unembedding change it.

    Attributes:
        answers: token of the clean answer.
        corrupt_answers: token of the corrupt answer.

    Raises:
        MechnumError: on another name.
    """

    decoder: Decoder
    name: MetricName
    answers: Int[Tensor, " pair"]
    corrupt_answers: Int[Tensor, " pair"]

    def __post_init__(self) -> None:
        if self.name not in get_args(MetricName):
            raise MechnumError(
                f"unknown metric {self.name!r}: use one of {', '.join(get_args(MetricName))}"
            )

    def __call__(
        self, normed: Float[Tensor, "*stack pair d_model"]
    ) -> Float[Tensor, "*stack pair"]:
        """The metric of states after the final norm."""
        if self.linear:
            direction, offset = self.readout(normed.dtype)
            return torch.einsum("...pd,pd->...p", normed, direction) + offset
        direction, offset = _columns(self.decoder, self.answers, normed.dtype)
        logprob = torch.einsum("...pd,pd->...p", normed, direction) + offset
        logprob = logprob - _log_normaliser(self.decoder, normed)
        return logprob if self.name == "logprob" else logprob.exp()

    @property
    def linear(self) -> bool:
        """Whether the metric is a linear function of the final norm's output."""
        return self.name in ("logit_diff", "logit")

    def readout(
        self, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "pair d_model"], Float[Tensor, " pair"]]:
        """Direction and offset of a linear metric, from the columns of W_U that it reads."""
        direction, offset = _columns(self.decoder, self.answers, dtype)
        if self.name == "logit_diff":
            other, other_offset = _columns(self.decoder, self.corrupt_answers, dtype)
            return direction - other, offset - other_offset
        return direction, offset


def _columns(
    decoder: Decoder, answers: Int[Tensor, " pair"], dtype: torch.dtype
) -> tuple[Float[Tensor, "pair d_model"], Float[Tensor, " pair"]]:
    answers = answers.to(decoder.device)
    columns = decoder.weights.W_U[:, answers].T.to(dtype)
    bias = decoder.weights.b_U
    offset = columns.new_zeros(len(answers)) if bias is None else bias[answers].to(dtype)
    return columns, offset


def _log_normaliser(
    decoder: Decoder, normed: Float[Tensor, "*stack pair d_model"]
) -> Float[Tensor, "*stack pair"]:
    rows = normed.reshape(-1, normed.shape[-1])
    sums = [
        decoder.unembed(rows[part]).logsumexp(-1)
        for part in batches(len(rows), 8 * decoder.spec.d_vocab_out)
    ]
    return torch.cat(sums).view(normed.shape[:-1])
