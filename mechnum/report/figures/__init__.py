"""Figures of results, as plotly figures: for pages and for notebooks."""

from __future__ import annotations

from mechnum.report.figures.effects import heads_map, layer_bars
from mechnum.report.figures.errors import answer_map, error_histogram
from mechnum.report.figures.helix import (
    R2_FLOOR,
    planes,
    planes_frame,
    r2_by_layer,
    scores_by_layer,
)

__all__ = [
    "R2_FLOOR",
    "answer_map",
    "error_histogram",
    "heads_map",
    "layer_bars",
    "planes",
    "planes_frame",
    "r2_by_layer",
    "scores_by_layer",
]
