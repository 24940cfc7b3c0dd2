"""`mechnum models`: what comes with the package."""

from __future__ import annotations

import json
from typing import Any

from mechnum.cli.tables import print_table


def models() -> None:
    """List the bundled models."""
    from mechnum.models.load import CARD_FILE, bundled

    cards: dict[str, dict[str, Any]] = {
        name: json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
        for name, folder in bundled().items()
    }
    print_table(
        ("model", "task", "held out", "about"),
        [(name, card["task"], _held_out(card), card["about"]) for name, card in cards.items()],
    )


def _held_out(card: dict[str, Any]) -> str:
    """How good a model is on what was held out; a process has a loss and no right answers."""
    if "heldout_accuracy" in card:
        return f"{card['heldout_accuracy']:.2%}"
    return f"{card['heldout_loss']:.4g} nats"
