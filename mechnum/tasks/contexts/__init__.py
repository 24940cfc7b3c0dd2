"""Numbers in running text: contexts of ours, texts from files, weekdays and months."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.tasks.contexts.ordinals import ORDINALS, ordinal_prompts
    from mechnum.tasks.contexts.prompts import ContextPrompts, context_prompts
    from mechnum.tasks.contexts.sources import hub_texts, read_texts
    from mechnum.tasks.contexts.texts import CONTEXTS, Context, own_context

_HOMES = {
    "CONTEXTS": "texts",
    "Context": "texts",
    "ContextPrompts": "prompts",
    "ORDINALS": "ordinals",
    "context_prompts": "prompts",
    "hub_texts": "sources",
    "ordinal_prompts": "ordinals",
    "own_context": "texts",
    "read_texts": "sources",
}

__all__ = [
    "CONTEXTS",
    "ORDINALS",
    "Context",
    "ContextPrompts",
    "context_prompts",
    "hub_texts",
    "ordinal_prompts",
    "own_context",
    "read_texts",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
