"""Interventions and their effects."""

from __future__ import annotations

from mechnum.patching.effects import effects

__all__ = ["effects"]
