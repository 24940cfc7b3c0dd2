"""Edges are those of TransformerLens' own path patching, where it has them.

It knows heads that write to heads' queries, keys and values, on models that show each head its own
copy of the stream: GPT-2 and GPT-NeoX, not GPT-J.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformer_lens import patching

import mechnum as mn
from mechnum.patching import path_effects
from tests import fixtures
from tests.patching.test_effects import ANSWERS, CLEAN, CORRUPT, CORRUPT_ANSWERS, given_pairs

direct_path = getattr(patching, "get_act_patch_direct_path_all_sources", None)
pytestmark = pytest.mark.skipif(direct_path is None, reason="new in TransformerLens 4")


def sharp(architecture):
    """A net whose patterns are far from even, so that queries and keys matter."""
    net = fixtures.ARCHITECTURES[architecture]()
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return fixtures.bridge(net).eval()


@pytest.mark.parametrize("component", ["q", "k", "v"])
@pytest.mark.parametrize("architecture", ["gpt2", "gpt_neox parallel", "gpt_neox sequential"])
def test_heads_into_queries_keys_and_values(architecture, component):
    bridged = sharp(architecture)
    model, pairs = mn.wrap(bridged), given_pairs()
    rows = torch.arange(len(CLEAN))

    def metric(logits):
        return (logits[rows, -1, ANSWERS] - logits[rows, -1, CORRUPT_ANSWERS]).mean()

    with torch.no_grad():
        _, clean = bridged.run_with_cache(CLEAN)
        before, corrupt = bridged.run_with_cache(CORRUPT)
        scores = direct_path(
            bridged, CORRUPT, clean, corrupt, metric, component=component, verbose=False
        )
    expected = (scores - metric(before)).numpy()
    found = path_effects(model, pairs, "heads", component)["effect"].mean("pair").values
    spec = model.spec
    found = found.reshape(spec.n_layers, spec.n_heads, spec.n_layers, spec.n_heads)
    for layer in range(spec.n_layers):
        # Theirs says 0 less the corrupt metric where there is no edge, ours NaN.
        assert np.isnan(found[layer, :, : layer + 1]).all()
        later = found[layer, :, layer + 1 :]
        np.testing.assert_allclose(later, expected[layer, :, layer + 1 :], atol=1e-5)
    assert np.nanmax(np.abs(found)) > 1e-2
