"""Grokked modular addition: progress measures, clock versus pizza."""

from __future__ import annotations
