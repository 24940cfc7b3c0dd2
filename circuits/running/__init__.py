"""Runs published circuits: recipes, the steps that they name, stored results, and the comparison
with what the papers published."""

from __future__ import annotations
