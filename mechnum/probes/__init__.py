"""Probes that decode numbers from states: sinusoidal and others, transfer, similarity, steering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.probes.base import NumberProbe
    from mechnum.probes.binary import BinaryProbe
    from mechnum.probes.collection import collect_around, collect_states
    from mechnum.probes.controls import token_table
    from mechnum.probes.curves import permuted, probe_curves
    from mechnum.probes.evaluation import evaluate, probe_accuracy
    from mechnum.probes.lenses import lens_accuracy
    from mechnum.probes.number_places import place_rows, reading_of, shared_numbers, word_rows
    from mechnum.probes.ordinals import leave_one_value_out
    from mechnum.probes.other_tokens import shared_words, token_rows
    from mechnum.probes.regression import (
        CircularDigitProbe,
        FourierRegressionProbe,
        LinearNumberProbe,
        LogNumberProbe,
    )
    from mechnum.probes.residues import ResidueProbe
    from mechnum.probes.similarity import number_similarity, similarity_map
    from mechnum.probes.sinusoidal import ParamSinProbe, SinProbe
    from mechnum.probes.steering.choice import best_steering
    from mechnum.probes.steering.inversion import invert_probe
    from mechnum.probes.steering.questions import training_split
    from mechnum.probes.steering.sweep import steer
    from mechnum.probes.steering.vectors import SteeringVectors, fit_vectors
    from mechnum.probes.tables import StateTable, context_tables, layer_table, layer_tables
    from mechnum.probes.transfer import leave_one_out_transfer, probe_transfer
    from mechnum.probes.values import value_split

_HOMES = {
    "BinaryProbe": "binary",
    "CircularDigitProbe": "regression",
    "FourierRegressionProbe": "regression",
    "LinearNumberProbe": "regression",
    "LogNumberProbe": "regression",
    "NumberProbe": "base",
    "ParamSinProbe": "sinusoidal",
    "ResidueProbe": "residues",
    "SinProbe": "sinusoidal",
    "StateTable": "tables",
    "SteeringVectors": "steering.vectors",
    "best_steering": "steering.choice",
    "collect_around": "collection",
    "collect_states": "collection",
    "context_tables": "tables",
    "evaluate": "evaluation",
    "fit_vectors": "steering.vectors",
    "invert_probe": "steering.inversion",
    "layer_table": "tables",
    "layer_tables": "tables",
    "leave_one_out_transfer": "transfer",
    "leave_one_value_out": "ordinals",
    "lens_accuracy": "lenses",
    "number_similarity": "similarity",
    "permuted": "curves",
    "place_rows": "number_places",
    "probe_accuracy": "evaluation",
    "probe_curves": "curves",
    "probe_transfer": "transfer",
    "reading_of": "number_places",
    "shared_numbers": "number_places",
    "shared_words": "other_tokens",
    "similarity_map": "similarity",
    "steer": "steering.sweep",
    "token_rows": "other_tokens",
    "token_table": "controls",
    "training_split": "steering.questions",
    "value_split": "values",
    "word_rows": "number_places",
}

__all__ = [
    "BinaryProbe",
    "CircularDigitProbe",
    "FourierRegressionProbe",
    "LinearNumberProbe",
    "LogNumberProbe",
    "NumberProbe",
    "ParamSinProbe",
    "ResidueProbe",
    "SinProbe",
    "StateTable",
    "SteeringVectors",
    "best_steering",
    "collect_around",
    "collect_states",
    "context_tables",
    "evaluate",
    "fit_vectors",
    "invert_probe",
    "layer_table",
    "layer_tables",
    "leave_one_out_transfer",
    "leave_one_value_out",
    "lens_accuracy",
    "number_similarity",
    "permuted",
    "place_rows",
    "probe_accuracy",
    "probe_curves",
    "probe_transfer",
    "reading_of",
    "shared_numbers",
    "shared_words",
    "similarity_map",
    "steer",
    "token_rows",
    "token_table",
    "training_split",
    "value_split",
    "word_rows",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
