"""The recipes of the bundled models: reproducible training runs, and their export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.training.bundle import export
    from mechnum.training.card import Card
    from mechnum.training.curves import training_curves
    from mechnum.training.history import History, history_files, history_of
    from mechnum.training.log import ProcessScore, PromptScore, Score, read_log
    from mechnum.training.loop import train
    from mechnum.training.recipe import Recipe
    from mechnum.training.recipes import RECIPES, find_recipe
    from mechnum.training.snapshot import snapshots

_HOMES = {
    "Card": "card",
    "History": "history",
    "ProcessScore": "log",
    "PromptScore": "log",
    "RECIPES": "recipes",
    "Recipe": "recipe",
    "Score": "log",
    "export": "bundle",
    "find_recipe": "recipes",
    "history_files": "history",
    "history_of": "history",
    "read_log": "log",
    "snapshots": "snapshot",
    "train": "loop",
    "training_curves": "curves",
}

__all__ = [
    "RECIPES",
    "Card",
    "History",
    "ProcessScore",
    "PromptScore",
    "Recipe",
    "Score",
    "export",
    "find_recipe",
    "history_files",
    "history_of",
    "read_log",
    "snapshots",
    "train",
    "training_curves",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
