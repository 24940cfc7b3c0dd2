"""Belief states: which linear subspace holds the posterior over a hidden process's states."""

from __future__ import annotations
