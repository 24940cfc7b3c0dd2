"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations
