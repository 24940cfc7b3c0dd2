"""The scores of a run over its steps, one JSON object a line."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from mechnum.errors import MechnumError

LOG_FILE = "log.jsonl"


@dataclass(frozen=True)
class Score:
    """Losses in nats and accuracies after `step` steps and `seconds` of training."""

    step: int
    seconds: float
    train_loss: float
    train_accuracy: float
    heldout_loss: float
    heldout_accuracy: float


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
        return [Score(**json.loads(line)) for line in whole_lines]
    except (ValueError, TypeError):
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
