"""The section that says how the results were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Facts, Text
from mechnum.report.page import Section

# Attributes that every trace has, in the order of reading; others follow under their own names.
_LABELS = {
    "model": "Model",
    "family": "Architecture",
    "task": "Task",
    "of": "Rows",
    "template": "Prompt",
    "bos": "BOS token",
    "digits": "Numbers of several tokens",
    "numbers_at": "Numbers read at each position",
    "p": "Modulus",
    "n_numbers": "How many numbers",
    "first": "First number",
    "n_dimensions": "Dimensions",
    "null": "Null of the spectrum",
    "draws": "Draws of the null",
    "folds": "Folds of numbers",
    "probe": "Probe",
    "n_train": "Prompts that train the probe",
    "n_questions": "Questions that are steered",
    "process": "Process",
    "length": "Tokens of a string",
    "n_strings": "Strings",
    "strings": "Strings of the process",
    "positions": "Positions read, from 0",
    "why_positions": "Why these positions",
    "untrained": "Untrained net",
    "shuffles": "Shuffles of the beliefs",
    "cutoffs": "Cut-offs of the regression, to choose from",
    "resamples": "Resamples of the intervals",
    "tested": "Places that are compared",
    "read": "Text in which a number is read",
    "top": "Strongest frequencies compared",
    "permutations": "Permutations of residues",
    "components": "Principal components, at most",
    "nodes": "Nodes",
    "senders": "Senders",
    "receivers": "Receivers",
    "periods": "Periods",
    "linear": "Linear column",
    "n_fit": "Prompts that are fitted",
    "n_mixed": "Heads that are mixed",
    "found_by": "Edges chosen by",
    "n_edges": "Edges of the circuit",
    "n_edges_of_the_model": "Edges of the model",
    "cut_edges_carry": "What cut edges carry",
    "variant": "Variant",
    "frozen": "Frozen components",
    "metric": "Metric",
    "direction": "Direction of patching",
    "values": "Values put in",
    "mean_over": "Means over",
    "position": "Position",
    "layers": "Layers",
    "n_layers": "Layers of the model",
    "basis": "Fourier basis",
    "d_model": "Width of the residual stream",
    "tau": "Where high waves begin",
    "tau_unit": "Counted in",
    "neurons_of_layer": "Layer of neurons and readout",
    "keys_from": "Key frequencies from",
    "circles_by": "Circles by",
    "features": "Numbers that the helix is of",
    "dropped_columns": "Columns dropped",
    "fit_seed": "Seed of the folds",
    "left_out": "Left out",
    "norm": "Final norm in direct effects",
    "accuracy": "Accuracy",
    "n_prompts": "Prompts",
    "n_drawn": "Prompts that are drawn",
    "n_states": "States",
    "contexts": "Contexts",
    "n_pairs_found_on": "Pairs that nodes and edges were chosen on",
    "n_pairs": "Pairs",
    "vary": "Operand that differs in a pair",
    "answered": "Prompts used",
    "dropped": "Dropped candidates",
    "seed": "Seed",
    "processing": "Weights",
    "dtype": "Precision",
    "verification": "Largest logit difference to the wrapped model",
    "logit_difference": "Largest logit difference to the wrapped model",
    "warning": "Warning",
    "command": "Command",
    "versions": "Versions",
}
_SAID_ELSEWHERE = ("about",)  # By a section of its own.
# What some values mean.
_MEANINGS = {
    "denoise": "the corrupt run is patched",
    "noise": "the clean run is patched",
    "other": "those of the pair's other prompt",
    "mean": "the mean over prompts",
    "resample": "those of another pair's prompt",
    "single": "refused",
    "last": "read at their last token",
    "exact": "recomputed",
    "frozen": "the unpatched run's scale is kept",
    "edge": "only the receiver's input changes",
    "path": "the receiver's value is read in a run with the sender patched",
}
_EXPLAINED = ("direction", "values", "cut_edges_carry", "norm", "variant", "digits")


def provenance_section(results: xr.DataTree) -> Section:
    """Every attribute of the results' root, in words."""
    attrs = {str(name): value for name, value in results.attrs.items()}
    names = [name for name in _LABELS if name in attrs]
    names += [name for name in attrs if name not in _LABELS and name not in _SAID_ELSEWHERE]
    labels = _LABELS | ({"norm": "Norm before the receivers"} if "variant" in attrs else {})
    labels |= {"folds": "Folds of strings"} if "process" in attrs else {}
    labels |= {"draws": "Draws of the solved examples"} if "n_questions" in attrs else {}
    rows = [
        (labels.get(name, name.replace("_", " ").capitalize()), _written(name, attrs))
        for name in names
    ]
    note = (
        "results.nc, written beside this page, holds every value with all digits; this page holds "
        "six significant digits, and means where there are pairs."
    )
    return Section("How it was made", [Facts(rows), Text([note])])


def _written(name: str, attrs: Mapping[str, Any]) -> str:
    value = attrs[name]
    content = reading.structured(value)
    if isinstance(content, Mapping):
        return "\n".join(f"{key}: {_item(item)}" for key, item in content.items()) or "none"
    if isinstance(content, (list, tuple, np.ndarray)):
        return ", ".join(_item(item) for item in np.ravel(content).tolist()) or "none"
    if name == "metric":
        return f"{value}: {words.metric(attrs)}"
    if name in _EXPLAINED and value in _MEANINGS:
        return f"{value}: {_MEANINGS[value]}"
    if name == "accuracy" and not isinstance(value, str):
        return words.percent(float(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value)) if name == "seed" else words.number(int(value))
    if isinstance(value, (float, np.floating)):
        return words.number(float(value))
    return str(value)


def _item(value: Any) -> str:
    """An entry of a list or mapping."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return words.number(value) if plain else str(value)
