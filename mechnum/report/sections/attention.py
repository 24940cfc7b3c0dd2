"""The section with the attention patterns of the example prompt."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import reading
from mechnum.report.blocks import Attention, Caption
from mechnum.report.page import Section

# A browser draws a head of 128 tokens in about a second.
MOST_TOKENS = 128
BUDGET = 120_000  # Attention weights in one page, about 0.7 MB.


def attention_section(results: xr.DataTree, effects: dict[str, pd.DataFrame]) -> Section | None:
    """All heads' patterns, or, where they are too many, those of the largest total effect."""
    dataset = reading.group(results, "attention")
    tokens = reading.example_tokens(results)
    if dataset is None or "pattern" not in dataset or tokens is None:
        return None
    last = {axis: slice(-MOST_TOKENS, None) for axis in ("query", "key")}
    pattern = dataset["pattern"].isel(last).transpose("layer", "head", "query", "key")
    layers = [int(layer) for layer in pattern["layer"].values]
    heads = [int(head) for head in pattern["head"].values]
    nodes = [(row, column) for row in range(len(layers)) for column in range(len(heads))]
    room = max(1, BUDGET // max(pattern.shape[2] * pattern.shape[3], 1))
    cut = []
    if len(tokens) > MOST_TOKENS:
        cut.append(f"The last {MOST_TOKENS} of {len(tokens):,} tokens are here.")
    if len(nodes) > room:
        cut.append(f"The {room:,} heads with the largest total effect are here, of {len(nodes):,}.")
        size = _sizes(effects)
        nodes.sort(key=lambda node: -size.get((layers[node[0]], heads[node[1]]), 0.0))
        nodes = sorted(nodes[:room])
    patterns: dict[int, dict[int, Any]] = {}
    for row, column in nodes:
        patterns.setdefault(layers[row], {})[heads[column]] = pattern.values[row, column]
    view = Attention(
        title="Attention of each head on the example",
        tokens=tokens[-MOST_TOKENS:],
        patterns=patterns,
        caption=Caption(
            text="How much each token (row) attends to itself and each earlier one (column): white "
            "is 0, dark is 1, grey cannot be seen. Choose a layer, then a head; hover for the "
            "weight.",
            estimand="Attention weights after the softmax: those of a row sum to 1",
            n="1 prompt",
            interval="none: the weights of this prompt; on other prompts heads attend otherwise",
            null="even attention: 1/k for each of the k tokens that a row can see",
        ),
        cut=" ".join(cut),
    )
    return Section("Attention", [view])


def _sizes(effects: dict[str, pd.DataFrame]) -> dict[tuple[int, int], float]:
    frame = effects.get("heads")
    if frame is None or "total" not in frame:
        return {}
    return {
        (int(layer), int(head)): abs(float(total))
        for layer, head, total in frame[["layer", "head", "total"]].dropna().to_numpy()
    }
