"""Probes that decode numbers from states: sinusoidal and others, transfer, similarity, steering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.probes.base import NumberProbe
    from mechnum.probes.binary import BinaryProbe
    from mechnum.probes.evaluation import evaluate, probe_accuracy
    from mechnum.probes.regression import (
        CircularDigitProbe,
        FourierRegressionProbe,
        LinearNumberProbe,
        LogNumberProbe,
    )
    from mechnum.probes.residues import ResidueProbe
    from mechnum.probes.sinusoidal import ParamSinProbe, SinProbe
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
    "evaluate": "evaluation",
    "probe_accuracy": "evaluation",
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
    "evaluate",
    "probe_accuracy",
    "value_split",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
