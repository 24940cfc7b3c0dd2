"""Addition by helices and clocks (Kantamneni & Tegmark 2025)."""

from __future__ import annotations
