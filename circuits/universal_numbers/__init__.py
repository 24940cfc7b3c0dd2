"""Numbers in language models: one sinusoidal code, alike in all of them (Štefánik et al. 2026)."""

from __future__ import annotations
