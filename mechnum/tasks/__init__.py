"""Tasks: prompts with right answers, found and checked among a model's own tokens."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mechnum.tasks.accuracy import Accuracy
    from mechnum.tasks.arithmetic import addition, modular_addition, parse
    from mechnum.tasks.given import pairs_from_tokens
    from mechnum.tasks.numbers import NumberTokens
    from mechnum.tasks.pairs import PairGroup, Pairs
    from mechnum.tasks.prompts import Prompts
    from mechnum.tasks.task import Task

_HOMES = {
    "Accuracy": "accuracy",
    "NumberTokens": "numbers",
    "PairGroup": "pairs",
    "Pairs": "pairs",
    "Prompts": "prompts",
    "Task": "task",
    "addition": "arithmetic",
    "modular_addition": "arithmetic",
    "pairs_from_tokens": "given",
    "parse": "arithmetic",
}

__all__ = [
    "Accuracy",
    "NumberTokens",
    "PairGroup",
    "Pairs",
    "Prompts",
    "Task",
    "addition",
    "modular_addition",
    "pairs_from_tokens",
    "parse",
]


def __getattr__(name: str) -> Any:
    # Torch takes seconds to import, and the command line's help must not wait for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
