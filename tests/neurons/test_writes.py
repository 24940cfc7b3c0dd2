"""The write score against projections written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import InvalidInput
from mechnum.neurons import write_score
from tests import fixtures


@pytest.fixture(scope="module")
def tiny():
    hf = fixtures.gptj()
    with torch.no_grad():
        hf.transformer.h[1].mlp.fc_out.weight[:, 3] = 0
    return hf, mn.wrap(hf, name="tiny")


def test_scores_are_shares_of_length_in_the_span(tiny):
    """The part of a row that is left after least squares on the directions is outside them."""
    hf, model = tiny
    basis = np.random.default_rng(0).normal(size=(32, 5)) * [1e-3, 1, 10, 1, 1]
    found = write_score(model, basis)
    assert found["score"].dims == ("layer", "neuron")
    for layer in range(3):
        rows = hf.transformer.h[layer].mlp.fc_out.weight.detach().double().numpy()
        inside = basis @ np.linalg.lstsq(basis, rows, rcond=None)[0]
        expected = np.linalg.norm(inside, axis=0) / np.maximum(np.linalg.norm(rows, axis=0), 1e-99)
        expected[3] = np.nan if layer == 1 else expected[3]
        np.testing.assert_allclose(found["score"].sel(layer=layer), expected, rtol=1e-9)
    assert found["status"].sel(layer=1, neuron=3) == "zero row"
    assert (found["status"] == "written").sum() == 3 * 128 - 1
    rotated = basis @ np.random.default_rng(1).normal(size=(5, 5))
    np.testing.assert_allclose(write_score(model, rotated)["score"], found["score"], rtol=1e-6)


def test_a_neuron_writes_into_its_own_direction_alone(tiny):
    hf, model = tiny
    own = hf.transformer.h[2].mlp.fc_out.weight[:, 17]
    found = write_score(model, own, "neuron 2.17, neuron 1.3, neuron 0.0")
    assert found["node"].values.tolist() == ["neuron 2.17", "neuron 1.3", "neuron 0.0"]
    assert float(found["score"][0]) == pytest.approx(1)
    assert np.isnan(found["score"][1])
    assert float(found["score"][2]) < 0.9
    np.testing.assert_allclose(write_score(model, np.eye(32))["score"].sel(layer=0), 1)


def test_random_directions_score_as_much_as_chance():
    found = write_score(mn.load("adder-gptj"), np.random.default_rng(0).normal(size=(128, 16)))
    assert float((found["score"] ** 2).mean()) == pytest.approx(16 / 128, rel=0.05)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (np.ones((31, 2)), r"shape \(31, 2\): give \[32, r\]"),
        (np.ones((32, 0)), r"shape \(32, 0\)"),
        (np.ones((1, 32, 2)), r"shape \(1, 32, 2\)"),
        (np.full((32, 1), np.nan), "not finite"),
        (np.eye(32)[:, :2] * [1, 0], "direction 1 is zero"),
        (np.ones((32, 2)), "2 directions span 1 dimensions"),
        (np.random.default_rng(0).normal(size=(32, 33)), "33 directions span 32 dimensions"),
        ([["x"]] * 32, "are no numbers"),
    ],
)
def test_directions_that_are_no_basis_are_refused(unchecked, tiny, basis, message):
    with pytest.raises(InvalidInput, match=message):
        write_score(tiny[1], basis)
