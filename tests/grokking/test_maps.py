"""Circles in their planes, logits by sum and class, the right logit by distance, spectra."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import InvalidInput
from tests import published
from tests.grokking.nets import circle, clock, published_net

P = 11


def noisy_table(seed: int) -> np.ndarray:
    """Circles of frequencies 2 and 5 in a random 12-dimensional frame, and a little noise."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(12, 4)))[0]
    waves = circle(P, [2, 5], [3.0, 1.0]).numpy()
    return waves @ frame.T + 7 * rng.normal(size=12) + 0.01 * rng.normal(size=(P, 12))


def test_planted_circles_come_back_with_their_phases():
    found = mn.grokking.circle_planes(noisy_table(0), [5, 2])
    assert found["frequency"].values.tolist() == [5, 2]
    for k, radius in ((5, 1.0), (2, 3.0)):
        w = 2 * np.pi * k * np.arange(P) / P
        own = found.sel(frequency=k)
        expected = np.column_stack([np.cos(w), np.sin(w)])
        np.testing.assert_allclose(own["coordinates"], expected, atol=0.05)
        assert float(own["radius"]) == pytest.approx(radius, abs=0.05)
        assert float(own["purity"]) > 0.99
    assert found["power"].values == pytest.approx([0.1, 0.9], abs=0.01)


def test_a_circle_in_the_plane_of_another_is_no_part_of_its_power():
    waves = circle(P, [2, 3]).numpy()
    found = mn.grokking.circle_planes(waves[:, :2] + 0.5 * waves[:, 2:], [2])
    # Both lie in the one plane that there is: 1 and 1/4 of the squared length.
    assert found["purity"].values == pytest.approx([0.8])
    assert found["power"].values == pytest.approx([0.8])


def test_tables_and_frequencies_without_a_plane_are_refused():
    with pytest.raises(InvalidInput, match="no wave of frequency 3"):
        mn.grokking.circle_planes(circle(P, [2]).numpy(), [3])
    with pytest.raises(InvalidInput, match="not finite"):
        mn.grokking.circle_planes(np.full((P, 3), np.nan), [3])
    with pytest.raises(InvalidInput, match="key frequencies"):
        mn.grokking.circle_planes(noisy_table(0), [7])
    with pytest.raises(InvalidInput, match="not prime"):
        mn.grokking.circle_planes(np.eye(9), [2])


def test_logit_maps_are_means_over_pairs_of_a_sum():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(P, P, P))
    found = mn.grokking.logit_map(logits, [1, 4])
    part = mn.grokking.key_part(logits, [1, 4])
    about = logits - logits.mean(axis=(0, 1))
    for sum_, c in ((0, 0), (3, 8), (10, 5)):
        pairs = [(a, (sum_ - a) % P) for a in range(P)]
        expected = np.mean([about[a, b, c] for a, b in pairs])
        assert float(found["logit"].sel({"sum": sum_, "class": c})) == pytest.approx(expected)
        expected = part[0, sum_, c]
        assert float(found["key_part"].sel({"sum": sum_, "class": c})) == pytest.approx(expected)
    error = 4
    along = [found["logit"].sel({"sum": s, "class": (s - error) % P}) for s in range(P)]
    assert float(found["by_error"].sel(error=error)) == pytest.approx(float(np.mean(along)))


def test_a_clock_is_the_same_along_diagonals_and_its_shares_are_its_circles():
    logits = mn.grokking.net_logits(clock(P, [2, 5]))
    found = mn.grokking.logit_map(logits, [2, 5])
    w = 2 * np.pi * np.arange(P) / P
    np.testing.assert_allclose(found["key_by_error"], np.cos(2 * w) + np.cos(5 * w), atol=1e-9)
    np.testing.assert_allclose(found["logit"], found["key_part"], atol=1e-9)
    assert mn.grokking.sum_shares(logits) == pytest.approx([0, 0.5, 0, 0, 0.5], abs=1e-9)


def test_shares_of_sums_are_those_of_single_keys():
    logits = np.random.default_rng(2).normal(size=(7, 7, 7))
    each = [mn.grokking.key_share(logits, [k]) for k in (1, 2, 3)]
    assert mn.grokking.sum_shares(logits) == pytest.approx(each)
    assert sum(each) < 1


def test_the_distance_map_has_every_pair_once():
    logits = np.random.default_rng(3).normal(size=(7, 7, 7))
    found = mn.grokking.distance_map(logits)
    for a in range(7):
        for b in range(7):
            place = {"sum": (a + b) % 7, "distance": (a - b) % 7}
            assert float(found.sel(place)) == logits[a, b, (a + b) % 7]
    table = found.values
    irrelevance = mn.grokking.distance_irrelevance(logits).sel(form="correct")
    assert float(irrelevance) == pytest.approx(table.std(axis=0).mean() / table.std())


@pytest.mark.parametrize("name", ["A", "B"])
def test_a_net_file_with_an_attention_rate_is_the_published_net(name, tmp_path):
    """As a function of embeddings, as a decoder, and by the formula written out from the file."""
    files = {"A": "clock_pizza_p99zdpze5l", "B": "clock_pizza_l8k1hzciux"}
    model = mn.load(published.pizza_net(tmp_path, files[name]))
    net = mn.grokking.net_from_model(model)
    by_hand = published_net(name)
    a, b = torch.arange(0, 59, 7), torch.arange(5, 59, 6)
    with torch.no_grad():
        found = net.logits(net.embeddings_a[a], net.embeddings_b[b])
        decoded = model.logits(torch.stack([a, b], 1))
        expected = by_hand.logits(by_hand.embeddings_a[a], by_hand.embeddings_b[b])
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(found, decoded, atol=1e-3, rtol=1e-4)


def test_spectra_name_the_keys_in_every_table():
    model = mn.load("clock-59")
    found = mn.grokking.net_spectra(model)["share"]
    assert found["table"].values.tolist() == ["W_E", "W_L", "neurons", "logits"]
    assert (found.sum("frequency") <= 1 + 1e-9).all()
    keys = mn.grokking.progress_measures(model)["key"].values
    for table in found["table"].values:
        strongest = found.sel(table=table).sortby(found.sel(table=table))["frequency"].values[-3:]
        assert set(strongest) == set(keys), table
    rows = model.decoder.weights.W_E[:59].detach().double().numpy()
    power = np.abs(np.fft.rfft(rows, axis=0)[1:]) ** 2
    expected = power.sum(axis=1) / power.sum()
    np.testing.assert_allclose(found.sel(table="W_E"), expected, atol=1e-6)
