"""Phase alignment and shapes of the first layer: planted phases, ideal shapes, plain CKA."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import mechnum as mn
from mechnum.errors import InvalidInput
from tests import published
from tests.grokking.nets import PUBLISHED

P = 29


def neurons(frequencies, phase_a, phase_b):
    a, b = np.ogrid[:P, :P]
    w = 2 * np.pi / P
    maps = [
        np.cos(w * k * a - x) + np.cos(w * k * b - y)
        for k, x, y in zip(frequencies, phase_a, phase_b)
    ]
    return np.stack(maps, 2)


def test_neurons_of_equal_phases_lie_on_the_diagonal_whatever_their_frequency():
    rng = np.random.default_rng(0)
    frequencies, phases = rng.integers(1, P // 2 + 1, 40), 2 * np.pi * rng.random(40)
    found = mn.grokking.phase_alignment(neurons(frequencies, phases, phases))
    np.testing.assert_array_equal(found["torus_distance"], 0)
    assert float(found["aligned"]) == 1
    # The highest number, relabelled to frequency 1, is the phase as a part of a turn.
    steps = np.abs(found["highest_a"] - phases * P / (2 * np.pi))
    assert (np.minimum(steps, P - steps) <= 0.5 + 1e-9).all()
    assert int(found["histogram"].sum()) == 40
    assert int(np.trace(found["histogram"])) == 40


@pytest.mark.parametrize("steps", [1, 7, 14])
def test_the_distance_is_the_difference_of_phases(steps):
    frequencies, whole = np.array([1, 5, 12]), 2 * np.pi * np.array([0, 4, 20]) / P
    shift = 2 * np.pi * steps / P
    found = mn.grokking.phase_alignment(neurons(frequencies, whole, whole + shift))
    np.testing.assert_array_equal(found["torus_distance"], steps)
    assert float(found["aligned"]) == (1.0 if steps <= P / 12 else 0.0)


def test_phases_that_are_independent_are_aligned_by_chance():
    rng = np.random.default_rng(1)
    phases = 2 * np.pi * rng.random((2, 2000))
    found = mn.grokking.phase_alignment(neurons(np.full(2000, 3), *phases))
    chance = float(found["aligned_by_chance"])
    assert chance == pytest.approx(5 / P)  # Steps of −2 … 2.
    assert float(found["aligned"]) == pytest.approx(chance, abs=0.03)


def test_constant_neurons_are_left_out():
    maps = neurons([3, 3], [0.0, 1], [0.0, 1])
    maps[:, :, 0] = 2
    found = mn.grokking.phase_alignment(maps)
    assert np.isnan(found["torus_distance"][0])
    assert list(found["highest_a"]) == [-1, found["highest_b"][1]]
    assert float(found["aligned"]) == 1
    assert np.isnan(mn.grokking.phase_alignment(maps[:, :, :1])["aligned"])


def test_equal_phases_give_a_disc_and_independent_ones_a_torus():
    rng = np.random.default_rng(2)
    phases = 2 * np.pi * np.arange(300) / 300
    k = np.array([5] * 200 + [9] * 100)
    disc = mn.grokking.disc_or_torus(neurons(k, phases, phases))
    assert list(disc["frequency"]) == [5, 9]
    assert list(disc["n_neurons"]) == [200, 100]
    several = 2 * np.pi * np.arange(12) / 12
    even = mn.grokking.disc_or_torus(neurons([4] * 12, several, several))["cka"].sel(frequency=4)
    # ‖YᵀX‖² over the lengths: the torus has the disc's two directions and two of their size.
    np.testing.assert_allclose(even, [1, 2**-0.5, 0], atol=1e-12)
    torus = mn.grokking.disc_or_torus(
        neurons([4] * 3000, 2 * np.pi * rng.random(3000), 2 * np.pi * rng.random(3000))
    )["cka"].sel(frequency=4)
    assert float(torus.sel(shape="torus")) > 0.995
    assert float(torus.sel(shape="disc")) == pytest.approx(2**-0.5, abs=0.02)


def test_logits_of_a_clock_are_a_circle():
    a, b, c = np.ogrid[:P, :P, :P]
    found = mn.grokking.disc_or_torus(np.cos(2 * np.pi * 4 * (a + b - c) / P))
    np.testing.assert_allclose(found["cka"].sel(frequency=4), [0, 0, 1], atol=1e-12)


def first_layer(name):
    """Pre-activations of the published attention nets over all pairs."""
    t = {key: x.double() for key, x in load_file(published.checkpoint(PUBLISHED[name])).items()}
    p = 59
    a, b = (
        index.flatten() for index in torch.meshgrid(torch.arange(p), torch.arange(p), indexing="ij")
    )
    table = t["embed.W_E"].T
    x = torch.stack([table[a], table[b]], 1) + t["pos_embed.W_pos"]
    q, k, v = (torch.einsum("hdm,bpm->bhpd", t[f"blocks.0.attn.W_{n}"], x) for n in "QKV")
    scores = (q @ k.transpose(-1, -2) / 32**0.5).softmax(-1)
    z = ((scores if name == "B" else torch.ones_like(scores)) @ v).transpose(1, 2).flatten(2)
    mid = (x + z @ t["blocks.0.attn.W_O"].T)[:, -1]
    return (mid @ t["blocks.0.mlp.W_in"].T + t["blocks.0.mlp.b_in"]).numpy().reshape(p, p, -1)


@pytest.mark.parametrize("name", ["A", "B"])
def test_clock_and_pizza_have_a_disc_in_their_first_layer(name):
    """As Moisescu-Pareja et al. find for both (CKA .97 to 1.0)."""
    maps = first_layer(name)
    found = mn.grokking.disc_or_torus(maps)
    discs = found["cka"].sel(shape="disc")
    assert (discs > 0.95).all()
    assert (discs > found["cka"].sel(shape="torus")).all()
    aligned = mn.grokking.phase_alignment(maps)
    assert aligned["aligned"] > 2.5 * aligned["aligned_by_chance"]


def test_maps_without_frequencies_are_refused():
    assert dict(mn.grokking.disc_or_torus(np.zeros((5, 5, 2))).sizes) == {
        "frequency": 0,
        "shape": 3,
    }
    with pytest.raises(InvalidInput, match="p = 4 is not prime"):
        mn.grokking.phase_alignment(np.zeros((4, 4, 2)))
