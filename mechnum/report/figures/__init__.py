"""Figures of results, as plotly figures: for pages and for notebooks."""

from __future__ import annotations

from mechnum.report.figures.circuit import MOST_EDGES, circuit_picture, strongest
from mechnum.report.figures.clock import (
    class_bars,
    clock_picture,
    cumulative_lines,
    stage_lines,
)
from mechnum.report.figures.effects import heads_map, layer_bars
from mechnum.report.figures.errors import answer_map, error_histogram
from mechnum.report.figures.faithfulness import faithfulness_lines
from mechnum.report.figures.helix import (
    R2_FLOOR,
    planes,
    planes_frame,
    r2_by_layer,
    scores_by_layer,
)
from mechnum.report.figures.nodes import SHOWN, node_bars, node_maps
from mechnum.report.figures.paths import path_map

__all__ = [
    "MOST_EDGES",
    "R2_FLOOR",
    "SHOWN",
    "answer_map",
    "circuit_picture",
    "class_bars",
    "clock_picture",
    "cumulative_lines",
    "error_histogram",
    "faithfulness_lines",
    "heads_map",
    "layer_bars",
    "node_bars",
    "node_maps",
    "path_map",
    "planes",
    "planes_frame",
    "r2_by_layer",
    "scores_by_layer",
    "stage_lines",
    "strongest",
]
