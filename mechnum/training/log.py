"""The scores of a run over its steps, one JSON object a line."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mechnum.errors import MechnumError

LOG_FILE = "log.jsonl"


@dataclass(frozen=True)
class Score:
    """After `step` steps and `seconds` of training: the loss (nats) on what is not trained on."""

    step: int
    seconds: float
    heldout_loss: float

    @property
    def losses(self) -> tuple[float, ...]:
        """All that has to stay a number."""
        return (self.heldout_loss,)

    def cells(self) -> dict[str, str]:
        """The score as a row of a table."""
        return {"held-out loss": f"{self.heldout_loss:.3g}"}

    def card_rows(self) -> dict[str, str]:
        """The score as lines of the model card."""
        return {"Held-out loss": f"{self.heldout_loss:.4g} nats"}

    def __str__(self) -> str:
        return f"held-out loss is {self.heldout_loss:.3g} nats"


@dataclass(frozen=True)
class PromptScore(Score):
    """Of answers to prompts: losses and shares of right answers."""

    train_loss: float
    train_accuracy: float
    heldout_accuracy: float

    @property
    def losses(self) -> tuple[float, ...]:
        """On both parts."""
        return self.train_loss, self.heldout_loss

    def cells(self) -> dict[str, str]:
        """The score as a row of a table."""
        return {
            "train loss": f"{self.train_loss:.3g}",
            "train accuracy": f"{self.train_accuracy:.2%}",
            **super().cells(),
            "held-out accuracy": f"{self.heldout_accuracy:.2%}",
        }

    def card_rows(self) -> dict[str, str]:
        """The score as lines of the model card."""
        return {
            "Held-out accuracy": f"{self.heldout_accuracy:.2%} (loss {self.heldout_loss:.3g})",
            "Training accuracy": f"{self.train_accuracy:.2%} (loss {self.train_loss:.3g})",
        }

    def __str__(self) -> str:
        return (
            f"held-out accuracy is {self.heldout_accuracy:.2%} (loss {self.heldout_loss:.3g} nats)"
        )


@dataclass(frozen=True)
class ProcessScore(Score):
    """Of the next tokens of a process, whose loss no net can bring below `bound`."""

    bound: float

    @property
    def excess(self) -> float:
        """How much of the bound the loss lies above it."""
        return self.heldout_loss / self.bound - 1 if self.bound else float("inf")

    def cells(self) -> dict[str, str]:
        """The score as a row of a table."""
        return {
            "held-out loss": f"{self.heldout_loss:.5g}",
            "least possible": f"{self.bound:.5g}",
            "above it": f"{self.excess:.2%}",
        }

    def card_rows(self) -> dict[str, str]:
        """The score as lines of the model card."""
        return {
            "Held-out loss": f"{self.heldout_loss:.5g}, {self.excess:.2%} above the least possible",
            "Least possible loss": f"{self.bound:.5g}, the entropy of the next token given those "
            "before it, mean over the positions",
        }

    def __str__(self) -> str:
        return (
            f"held-out loss is {self.heldout_loss:.5g} nats, {self.excess:.2%} above the least "
            "possible"
        )


_KINDS = {
    frozenset(field.name for field in fields(kind)): kind for kind in (PromptScore, ProcessScore)
}


def read_log(folder: Path) -> list[Score]:
    """The scores logged in `folder`, oldest first; none where there is no log.

    A last line without its end is work of a run that was killed while writing it.

    Raises:
        MechnumError: where the file holds something else.
    """
    path = folder / LOG_FILE
    if not path.exists():
        return []
    try:
        whole_lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return [_score(json.loads(line)) for line in whole_lines]
    except (ValueError, TypeError, KeyError):
        raise MechnumError(
            f"{path} is not a log of a training run: delete {folder} to start again"
        ) from None


def append_to_log(folder: Path, score: Score) -> None:
    """Add one line."""
    with (folder / LOG_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(score)) + "\n")


def cut_log(folder: Path, steps_done: int) -> list[Score]:
    """Drop the lines of work that was lost, after the last saved state; gives the others back."""
    kept = [score for score in read_log(folder) if score.step <= steps_done]
    unfinished = folder / (LOG_FILE + ".tmp")
    unfinished.write_text(
        "".join(json.dumps(asdict(score)) + "\n" for score in kept), encoding="utf-8"
    )
    os.replace(unfinished, folder / LOG_FILE)
    return kept


def _score(line: dict[str, Any]) -> Score:
    return _KINDS[frozenset(line)](**line)
