"""Loads the model, or its tokenizer, that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mechnum.progress import working

if TYPE_CHECKING:
    from mechnum.models import Model


def load_tokenizer(name: str) -> Any:
    """`mechnum.models.load_tokenizer`, with a progress bar."""
    with working(f"loading the tokenizer of {name}"):
        from mechnum.models import load_tokenizer

        return load_tokenizer(name)


def load_model(name: str, device: str | None = None, dtype: str | None = None) -> Model:
    """`mechnum.load`, with a progress bar that also covers the seconds of the first import."""
    with working(f"loading {name}"):
        from mechnum.models import load

        return load(name, device=device, dtype=dtype)
