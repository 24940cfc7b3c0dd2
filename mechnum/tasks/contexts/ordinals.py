"""Words that have an order: weekdays, months and the names of small numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from mechnum.errors import MechnumError
from mechnum.tasks.contexts.prompts import ContextPrompts, Draft, prompts_of

if TYPE_CHECKING:
    from mechnum.models.model import Model

_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
_NUMBER_WORDS = "zero one two three four five six seven eight nine"

ORDINALS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "weekdays": tuple(_WEEKDAYS.split()),
        "months": tuple(_MONTHS.split()),
        "number words": tuple(_NUMBER_WORDS.split()),
    }
)
"""The words of each kind in their order; a word's value is its place, from 0 on."""

# The text up to the word, which is read before what follows it.
_TEMPLATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "weekdays": (
            "The meeting is on {}",
            "She was born on a {}",
            "We will see each other next {}",
            "The shop is closed every {}",
            "Today is {}",
            "He has worked there since last {}",
            "The parcel should arrive by {}",
            "My favourite day of the week is {}",
            "The deadline was moved to {}",
            "It rained all day on {}",
        ),
        "months": (
            "The meeting is in {}",
            "She was born in {}",
            "We will see each other in {}",
            "The shop is closed during {}",
            "The current month is {}",
            "He has worked there since last {}",
            "The parcel should arrive in {}",
            "My favourite month of the year is {}",
            "The deadline was moved to {}",
            "It rained for weeks in {}",
        ),
        "number words": (
            "The answer is {}",
            "She counted up to {}",
            "There are exactly {}",
            "He said the number {}",
            "The password begins with {}",
            "My favourite digit is {}",
            "The group was reduced to {}",
            "On the door it says {}",
            "The result was rounded to {}",
            "They were waiting for number {}",
        ),
    }
)


def ordinal_prompts(model: Model, kind: str = "weekdays") -> tuple[ContextPrompts, ...]:
    """Every word of a kind in ten sentences, read at its last token.

    Source: Štefánik et al. 2026 (arXiv 2510.26285), ordinals; the sentences are ours.

    Args:
        kind: "weekdays", "months" or "number words".

    Returns:
        Groups as of `context_prompts`; the value "n1" is the word's place in `ORDINALS`.

    Raises:
        MechnumError: another kind, or a model without tokenizer.
    """
    if kind not in ORDINALS:
        raise MechnumError(f"there are no ordinals {kind!r}: use one of {', '.join(ORDINALS)}")
    drafts = [
        Draft(kind, index, tuple(template.split("{}")), (word,), (value,))
        for index, template in enumerate(_TEMPLATES[kind])
        for value, word in enumerate(ORDINALS[kind])
    ]
    return prompts_of(model, drafts)
