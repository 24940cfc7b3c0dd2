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
    from mechnum.probes.ordinals import leave_one_value_out
    from mechnum.probes.other_tokens import token_rows
    from mechnum.probes.regression import (
        CircularDigitProbe,
        FourierRegressionProbe,
        LinearNumberProbe,
        LogNumberProbe,
    )
    from mechnum.probes.residues import ResidueProbe
    from mechnum.probes.similarity import number_similarity
    from mechnum.probes.sinusoidal import ParamSinProbe, SinProbe
    from mechnum.probes.tables import (
        StateTable,
        context_tables,
        layer_table,
        layer_tables,
    )
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
    "collect_around": "collection",
    "collect_states": "collection",
    "context_tables": "tables",
    "evaluate": "evaluation",
    "layer_table": "tables",
    "layer_tables": "tables",
    "leave_one_out_transfer": "transfer",
    "leave_one_value_out": "ordinals",
    "lens_accuracy": "lenses",
    "number_similarity": "similarity",
    "permuted": "curves",
    "probe_accuracy": "evaluation",
    "probe_curves": "curves",
    "probe_transfer": "transfer",
    "token_rows": "other_tokens",
    "token_table": "controls",
    "value_split": "values",
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
    "collect_around",
    "collect_states",
    "context_tables",
    "evaluate",
    "layer_table",
    "layer_tables",
    "leave_one_out_transfer",
    "leave_one_value_out",
    "lens_accuracy",
    "number_similarity",
    "permuted",
    "probe_accuracy",
    "probe_curves",
    "probe_transfer",
    "token_rows",
    "token_table",
    "value_split",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
