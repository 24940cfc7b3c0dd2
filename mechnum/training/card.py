"""The model card: where a bundled model comes from and how good it is."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechnum.training.examples import SplitWords
from mechnum.training.log import Score

CARD_FILE = "card.json"
README_FILE = "README.md"


@dataclass(frozen=True)
class Card:
    """What `card.json` holds; losses in nats.

    Attributes:
        command: makes the model again.
        task: as the recipe has it.
        template: the prompt with {a} and {b}; None for a net without a tokenizer.
        score: of the weights as they are stored, with the seconds of training on one thread, by
            the clock on the wall.
        dtype: of the stored weights.
        versions: of the packages that it was trained with.
    """

    name: str
    about: str
    good_for: str
    not_for: str
    command: str
    task: str
    template: str | None
    seed: int
    split: SplitWords
    score: Score
    steps: int
    parameters: int
    dtype: str
    recipe: dict[str, Any]
    versions: dict[str, str]

    def content(self) -> dict[str, Any]:
        """The card as JSON, its scores on the same level as all else."""
        fields = asdict(self)
        scores = {name: value for name, value in fields.pop("score").items() if name != "step"}
        return fields | scores

    def write(self, folder: Path) -> None:
        """Write `card.json` and the same in words as `README.md`."""
        (folder / CARD_FILE).write_text(
            json.dumps(self.content(), indent=1) + "\n", encoding="utf-8"
        )
        (folder / README_FILE).write_text(self._in_words(), encoding="utf-8")

    def _in_words(self) -> str:
        minutes = self.score.seconds / 60
        rows = {
            "Task": f"`{self.task}`" + (f", prompt `{self.template}`" if self.template else ""),
            **self.score.card_rows(),
            self.split.of.capitalize(): f"{self.split.train:,} to train on, "
            f"{self.split.heldout:,} held out",
            "Parameters": f"{self.parameters:,} in {self.dtype}",
            "Training": f"{self.steps:,} steps in {minutes:.0f} minutes by the clock on one thread",
            "Seed": str(self.seed),
            "Trained with": ", ".join(f"{name} {v}" for name, v in self.versions.items()),
        }
        table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
        settings = "\n".join(f"{n} = {json.dumps(v)}" for n, v in self.recipe.items())
        return (
            f"# {self.name}\n\n{_wrapped(self.about)}\n\n| | |\n|---|---|\n{table}\n\n"
            f"Losses are cross-entropies in nats, and all scores are those of the weights as they "
            f"are\nstored here. `log.jsonl` has the scores during training.\n\n"
            f"{_wrapped('**Split.** ' + self.split.drawn)}\n\n"
            f"{_wrapped('**Good for.** ' + self.good_for)}\n\n"
            f"{_wrapped('**Not for.** ' + self.not_for)}\n\n"
            f"## Make it again\n\n```\n{self.command}\n```\n\n"
            f"With the same versions and on the same kind of processor the weights come out the "
            f"same,\nbit for bit.\n\n"
            f"```\n{settings}\n```\n"
        )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=98, break_long_words=False, break_on_hyphens=False)
