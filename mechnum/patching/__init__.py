"""Interventions and their effects."""

from mechnum.patching.effects import effects

__all__ = ["effects"]
