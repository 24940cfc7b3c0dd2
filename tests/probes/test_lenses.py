"""Lenses: those of plain modules, a planted affine map, and the same test rows as probes have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechnum.errors import InvalidInput
from mechnum.probes import collect_states, layer_table, lens_accuracy
from mechnum.probes.tables import hold_out

from .texts import reader, texts


@pytest.fixture(scope="module")
def collected():
    return collect_states(reader(), texts(60, 3), [0, 1, 2])


def test_the_logit_lens_is_norm_and_unembedding_of_the_test_rows(collected):
    found = lens_accuracy(reader(), collected, seed=3)
    table = layer_table(collected, 0)
    test = hold_out({0: table}, seed=3).test_rows(table)
    net = reader().wrapped
    tokens = collected["token"].values
    digits = np.unique(tokens)
    for index, layer in enumerate([0, 1, 2]):
        states = torch.from_numpy(collected["states"].values[index][test])
        with torch.no_grad():
            # The last residual is read as it is; transformers gives it behind the norm.
            logits = net.lm_head(net.model.norm(states)).numpy()
        right = digits[logits[:, digits].argmax(axis=1)] == tokens[test]
        own = found.sel(lens="logit", layer=layer)
        assert float(own["accuracy"]) == right.mean()
        assert float(own["anywhere"]) == np.mean(logits.argmax(axis=1) == tokens[test])
    assert found.attrs["test_rows"] == test.sum()
    assert (found["agreement"].sel(layer=2) == 1).all()
    assert int(found["n_tokens"]) == 10
    counts = np.unique(tokens[test], return_counts=True)[1]
    assert float(found["chance"]) == counts.max() / test.sum()


def test_the_tuned_lens_undoes_a_planted_map_that_the_logit_lens_does_not(collected):
    """Layer 0 replaced by an affine image of the last layer: its map back is exact."""
    generator = np.random.default_rng(0)
    planted = collected.copy(deep=True)
    last = planted["states"].sel(layer=2).values.astype(np.float64)
    d = last.shape[1]
    turned = last @ np.linalg.qr(generator.normal(size=(d, d)))[0] + generator.normal(size=d)
    planted["states"][0] = turned.astype(np.float32)
    found = lens_accuracy(reader(), planted)["agreement"].sel(layer=0)
    assert float(found.sel(lens="tuned")) > 0.9
    assert float(found.sel(lens="logit")) < 0.5


def test_states_that_lenses_cannot_read_are_refused(collected):
    for match, states in {
        "need the states of layer 2": collected.sel(layer=[0, 1]),
        "no states of reader": collected.isel(dimension=slice(5)),
        "cannot answer token 999": collected.assign_coords(token=collected["token"] * 0 + 999),
    }.items():
        with pytest.raises(InvalidInput, match=match):
            lens_accuracy(reader(), states)
