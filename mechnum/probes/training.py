"""The training loop of all probes that are trained by gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mechnum.errors import InvalidInput, MechnumError
from mechnum.inputs import positive_integer
from mechnum.progress import track

CHECK_EVERY = 50
"""Steps between two looks at the held-out numbers."""
_LEAST_LOGIT = -60.0


@dataclass(frozen=True)
class Schedule:
    """How long, how fast and on how many rows at a time.

    Attributes:
        steps: of Adam (Kingma & Ba 2015), at most.
        batch_size: rows of a step; None for all.
        learning_rate: at the first step.
        decay: whether it falls to 0 linearly over `steps`.
        patience: steps without a better held-out score after which training stops; None for never.
    """

    steps: int
    batch_size: int | None
    learning_rate: float
    decay: bool
    patience: int | None

    def __post_init__(self) -> None:
        positive_integer("steps", self.steps)
        for name in ("batch_size", "patience"):
            if getattr(self, name) is not None:
                positive_integer(name, getattr(self, name))
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InvalidInput(
                f"learning_rate is {self.learning_rate}: give a number above 0, such as 0.01"
            )


@dataclass(frozen=True, order=True)
class Score:
    """How well held-out numbers are read; a larger one is better.

    Attributes:
        accuracy: share of rows that are read exactly, all numbers competing.
        log_likelihood: mean log-probability of the true number, which decides between equals.
    """

    accuracy: float
    log_likelihood: float


@dataclass(frozen=True)
class Check:
    """A look at the held-out numbers after `step` steps."""

    step: int
    score: Score


def train(
    module: nn.Module,
    loss: Callable[[Int[Tensor, " batch"]], Float[Tensor, ""]],
    check: Callable[[], Score] | None,
    n_rows: int,
    schedule: Schedule,
    generator: np.random.Generator,
    what: str,
) -> list[Check]:
    """Train `module` in place; it ends in the state of the best check, or without one in the last.

    Args:
        loss: of the rows with these indices.
        check: the score of the module as it is; None where no numbers are held out.
        n_rows: how many rows there are to draw batches from.
        generator: of the batches.
        what: what the progress bar says.

    Returns:
        All checks, in order.

    Raises:
        MechnumError: once the loss is no longer a number.
    """
    # Whatever the caller switched off; gradients are needed here.
    with torch.inference_mode(False), torch.enable_grad():
        optimizer = torch.optim.Adam(module.parameters(), lr=schedule.learning_rate, fused=True)
        checks: list[Check] = []
        best: Check | None = None
        kept: dict[str, Tensor] = {}
        drawn = _batches(n_rows, schedule.batch_size, generator)
        for step in track(range(1, schedule.steps + 1), what):
            if schedule.decay:
                left = 1 - (step - 1) / schedule.steps
                optimizer.param_groups[0]["lr"] = schedule.learning_rate * left
            value = loss(torch.from_numpy(next(drawn)))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            if step % CHECK_EVERY and step < schedule.steps:
                continue
            if not math.isfinite(value.item()):
                raise MechnumError(
                    f"the loss of {what} is {value.item()} after {step} steps: lower learning_rate"
                )
            if check is None:
                continue
            with torch.no_grad():
                checks.append(Check(step, check()))
            if best is None or checks[-1].score > best.score:
                best = checks[-1]
                # A copy: the tensors of a state dictionary go on being trained.
                kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            elif schedule.patience is not None and step - best.step >= schedule.patience:
                break
        if kept:
            module.load_state_dict(kept)
    return checks


def cross_entropy(
    logits: Float[Tensor, "batch column"], targets: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Mean of −log softmax at the targets, without the subnormal numbers that slow CPUs down.

    Probabilities below e⁻⁶⁰ come to nothing beside 1 in either precision, but their gradients,
    some 10⁻⁴⁰, make the matrix products that follow ten times as slow.
    """
    logits = logits - logits.detach().amax(dim=1, keepdim=True)
    total = logits.clamp_min(_LEAST_LOGIT).logsumexp(dim=1)
    # The target is not clamped: a sure mistake must keep its gradient.
    return (total - logits.gather(1, targets[:, None])[:, 0]).mean()


def _batches(
    n_rows: int, size: int | None, generator: np.random.Generator
) -> Iterator[Int[np.ndarray, " batch"]]:
    """Rows of one step after another, for ever: each row once before any comes again."""
    if size is None or size >= n_rows:
        while True:
            yield np.arange(n_rows)
    while True:
        order = generator.permutation(n_rows)
        # What is left over at the end would be a batch of another size.
        for start in range(0, n_rows - size + 1, size):
            yield order[start : start + size]
