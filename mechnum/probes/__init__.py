"""Probes that decode numbers from states: sinusoidal and others, transfer, similarity, steering."""

from __future__ import annotations
