"""Beliefs about a hidden process in the residual stream (Shai et al. 2024)."""

from __future__ import annotations
