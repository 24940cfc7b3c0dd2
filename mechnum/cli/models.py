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
        [
            (name, card["task"], f"{card['heldout_accuracy']:.2%}", card["about"])
            for name, card in cards.items()
        ],
    )
