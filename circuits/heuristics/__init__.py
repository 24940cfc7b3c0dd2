"""Arithmetic by a bag of heuristics (Nikankin et al. 2025)."""

from __future__ import annotations
