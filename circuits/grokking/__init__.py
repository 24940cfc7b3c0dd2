"""Grokking: how a one-layer net adds modulo a prime (Nanda et al. 2023)."""

from __future__ import annotations
