"""Figures of results, as plotly figures: for pages and for notebooks."""

from __future__ import annotations

from mechnum.report.figures.beliefs import (
    belief_scatter,
    entropy_line,
    horizon_lines,
    layer_errors,
    patching_lines,
    simplices,
    training_errors,
    tree_picture,
)
from mechnum.report.figures.circuit import MOST_EDGES, circuit_picture, strongest
from mechnum.report.figures.clock import (
    class_bars,
    clock_picture,
    cumulative_lines,
    stage_lines,
)
from mechnum.report.figures.controls import ablation_bars, linear_lines
from mechnum.report.figures.effects import heads_map, layer_bars
from mechnum.report.figures.errors import answer_map, error_histogram
from mechnum.report.figures.faithfulness import faithfulness_lines
from mechnum.report.figures.helix import (
    METHODS,
    R2_FLOOR,
    method_name,
    planes,
    planes_frame,
    r2_by_layer,
    scores_by_layer,
)
from mechnum.report.figures.modular import (
    along_lines,
    circle_panels,
    formula_bars,
    frequency_bars,
    square_map,
    step_lines,
)
from mechnum.report.figures.neurons import (
    VERDICTS,
    accuracy_curves,
    ecdf_lines,
    kind_bars,
    knock_out_bars,
    layer_share_bars,
    mlp_scatter,
    period_map,
    verdict_scatter,
)
from mechnum.report.figures.nodes import SHOWN, node_bars, node_maps
from mechnum.report.figures.paths import path_map
from mechnum.report.figures.probes import accuracy_map, accuracy_panels, sine_stems
from mechnum.report.figures.rescue import arm_bars, arm_lines
from mechnum.report.figures.similarity import chance_ranges, labelled_map, match_lines
from mechnum.report.figures.space import continuity_loop, helix_in_space, structure_of_numbers
from mechnum.report.figures.spectra import (
    residue_bars,
    residue_map,
    spectrum_lines,
    spectrum_map,
    wave_lines,
)
from mechnum.report.figures.steering import reading_lines, steering_maps

__all__ = [
    "METHODS",
    "MOST_EDGES",
    "R2_FLOOR",
    "SHOWN",
    "VERDICTS",
    "ablation_bars",
    "accuracy_curves",
    "accuracy_map",
    "accuracy_panels",
    "along_lines",
    "answer_map",
    "arm_bars",
    "arm_lines",
    "belief_scatter",
    "chance_ranges",
    "circle_panels",
    "circuit_picture",
    "class_bars",
    "clock_picture",
    "continuity_loop",
    "cumulative_lines",
    "ecdf_lines",
    "entropy_line",
    "error_histogram",
    "faithfulness_lines",
    "formula_bars",
    "frequency_bars",
    "heads_map",
    "helix_in_space",
    "horizon_lines",
    "kind_bars",
    "knock_out_bars",
    "labelled_map",
    "layer_bars",
    "layer_errors",
    "layer_share_bars",
    "linear_lines",
    "match_lines",
    "method_name",
    "mlp_scatter",
    "node_bars",
    "node_maps",
    "patching_lines",
    "path_map",
    "period_map",
    "planes",
    "planes_frame",
    "r2_by_layer",
    "reading_lines",
    "residue_bars",
    "residue_map",
    "scores_by_layer",
    "simplices",
    "sine_stems",
    "spectrum_lines",
    "spectrum_map",
    "square_map",
    "stage_lines",
    "steering_maps",
    "step_lines",
    "strongest",
    "structure_of_numbers",
    "training_errors",
    "tree_picture",
    "verdict_scatter",
    "wave_lines",
]
