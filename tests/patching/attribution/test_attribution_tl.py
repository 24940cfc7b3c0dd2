"""Estimates are those of TransformerLens' own attribution patching, where it has them.

It knows multi-head models, single prompts and the gradient at the corrupt run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.nodes import Node
from tests import fixtures
from tests.patching.test_effects import ANSWERS, CLEAN, CORRUPT, CORRUPT_ANSWERS, given_pairs

attribution_patching = pytest.importorskip("transformer_lens.tools.analysis.attribution_patching")

ARCHITECTURES = ["gpt2", "gpt_neox parallel", "gpt_neox sequential"]
KINDS = {
    "embed": "embed",
    "attn_head_out": "head",
    "mlp_out": "mlp",
    "q_input": "q",
    "k_input": "k",
    "v_input": "v",
    "mlp_in": "mlp_in",
    "logits": "logits",
}


def theirs(bridged: Any, row: int, granularity: str) -> Any:
    """Their scores of one pair, of each position by itself."""

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return logits[0, -1, ANSWERS[row]] - logits[0, -1, CORRUPT_ANSWERS[row]]

    config = attribution_patching.EdgeAttributionConfig(granularity=granularity)
    return attribution_patching.attribution_patch(
        bridged, CLEAN[row : row + 1], CORRUPT[row : row + 1], metric, config
    )


def ours(node: Any) -> str:
    kind = KINDS[node.kind]
    layer = None if kind in ("embed", "logits") else node.layer
    return str(Node(kind, layer, node.head))  # type: ignore[arg-type]  # one of its kinds


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nodes(architecture):
    bridged = fixtures.bridge(fixtures.ARCHITECTURES[architecture]()).eval()
    model, pairs = mn.wrap(bridged), given_pairs()
    nodes = ["embed", *[f"head {layer}.{head}" for layer in range(3) for head in range(4)],
             "mlp 0", "mlp 1", "mlp 2"]  # fmt: skip
    found = attribute(model, pairs, "gradient", nodes, position="each")["estimate"]
    for row in range(3):
        scores = theirs(bridged, row, "node").node_scores
        assert len(scores) == found[row].size
        for node, expected in scores.items():
            own = found[row].sel({"position": node.position - 5, "node": ours(node)})
            np.testing.assert_allclose(own, expected, atol=1e-5)
    assert np.abs(found).max() > 1e-2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_edges(architecture):
    bridged = fixtures.bridge(fixtures.ARCHITECTURES[architecture]()).eval()
    model, pairs = mn.wrap(bridged), given_pairs()
    each = attribute(model, pairs, "eap", position="each")["estimate"]
    every = attribute(model, pairs, "eap")["estimate"]
    senders, receivers = (list(every[dim].values) for dim in ("sender", "receiver"))
    for row in range(3):
        summed = np.full(every.shape[1:], np.nan)
        for (writer, reader), expected in theirs(bridged, row, "edge").edge_scores.items():
            at = senders.index(ours(writer)), receivers.index(ours(reader))
            own = each[row].values[(writer.position, *at)]
            np.testing.assert_allclose(own, expected, atol=1e-5)
            summed[at] = np.nan_to_num(summed[at]) + expected
        # They know the same edges, and no others.
        np.testing.assert_allclose(every[row], summed, atol=1e-5)
    assert np.nanmax(np.abs(every)) > 1e-2
