"""Tasks: prompts with right answers, found and checked among a model's own tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.tasks import contexts, processes
    from mechnum.tasks.accuracy import Accuracy
    from mechnum.tasks.answers import answer_tokens
    from mechnum.tasks.arithmetic import addition, modular_addition, parse
    from mechnum.tasks.given import pairs_from_tokens
    from mechnum.tasks.numbers import NumberTokens
    from mechnum.tasks.operations import operation
    from mechnum.tasks.pairs import PairGroup, Pairs
    from mechnum.tasks.prompts import Prompts, TokenSequences
    from mechnum.tasks.signatures import error_kinds, error_signature
    from mechnum.tasks.single_numbers import number_prompts, number_tokens
    from mechnum.tasks.states import activations_of, numbers_of, sample_prompts, states_of
    from mechnum.tasks.task import Task

_HOMES = {
    "Accuracy": "accuracy",
    "NumberTokens": "numbers",
    "PairGroup": "pairs",
    "Pairs": "pairs",
    "Prompts": "prompts",
    "Task": "task",
    "TokenSequences": "prompts",
    "activations_of": "states",
    "addition": "arithmetic",
    "answer_tokens": "answers",
    "contexts": "contexts",
    "error_kinds": "signatures",
    "error_signature": "signatures",
    "modular_addition": "arithmetic",
    "number_prompts": "single_numbers",
    "number_tokens": "single_numbers",
    "numbers_of": "states",
    "operation": "operations",
    "pairs_from_tokens": "given",
    "parse": "arithmetic",
    "processes": "processes",
    "sample_prompts": "states",
    "states_of": "states",
}

__all__ = [
    "Accuracy",
    "NumberTokens",
    "PairGroup",
    "Pairs",
    "Prompts",
    "Task",
    "TokenSequences",
    "activations_of",
    "addition",
    "answer_tokens",
    "contexts",
    "error_kinds",
    "error_signature",
    "modular_addition",
    "number_prompts",
    "number_tokens",
    "numbers_of",
    "operation",
    "pairs_from_tokens",
    "parse",
    "processes",
    "sample_prompts",
    "states_of",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
