"""One-frequency shares and sums of phases: planted, and in the net of Nanda et al. 2023."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.neurons import frequency_share, phase_sums
from mechnum.tasks import activations_of
from tests import published
from tests.neurons.planted import OPERAND_K, P, Planted, planted, wave

KEYS = {37, 6, 41, 23, 39}


@pytest.fixture(scope="module")
def grokked(tmp_path_factory):
    path = published.grokking_net(tmp_path_factory.mktemp("net"))
    return mn.load(str(path)), mn.tasks.modular_addition(113)


@pytest.fixture(scope="module")
def shares(grokked):
    return frequency_share(*grokked)


def test_the_published_net_has_its_key_frequencies(shares):
    counts = shares["n_neurons"].sel(layer=0)
    assert set(counts["frequency"].values[np.argsort(counts.values)[-5:]]) == KEYS
    order = counts.sel(frequency=[37, 6, 41, 23, 39]).values
    assert (np.diff(order) < 0).all()
    assert int(counts.sum()) == 512
    well = shares["n_explained"].sel(layer=0)
    assert set(well["frequency"].values[well.values > 0]) == KEYS


def test_the_share_of_explained_neurons_is_that_of_plain_least_squares(grokked, shares):
    """Degree-2 waves of one frequency in a and b, fitted to every neuron of the published net."""
    model, task = grokked
    values = activations_of(model, task.prompts(model), "mlp_hidden")[0].astype(np.float64)
    a, b = np.divmod(np.arange(113**2), 113)
    total = np.sum((values - values.mean(axis=0)) ** 2, axis=0)
    own = shares["share"].sel(layer=0)
    best = np.zeros(512)
    for k in sorted(KEYS):
        w = 2 * np.pi * k / 113
        of_a, of_b = ([np.ones(113**2), np.cos(w * n), np.sin(w * n)] for n in (a, b))
        columns = np.stack([x * y for x in of_a for y in of_b], axis=1)
        left = values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
        explained = 1 - np.sum(left**2, axis=0) / total
        np.testing.assert_allclose(own.sel(frequency=k), explained, atol=1e-6)
        best = np.maximum(best, explained)
    enough = shares["explained"].sel(layer=0).values >= 0.85
    np.testing.assert_array_equal(enough, best >= 0.85)
    assert int(enough.sum()) == 185


def test_the_output_phase_of_the_published_net_is_the_sum_of_the_input_phases(grokked):
    found = phase_sums(*grokked)
    clear = (found["status"] == "one frequency") & (found["power"].sel(profile="a") >= 0.8)
    difference = np.abs(found["difference"].values[clear.values])
    assert len(difference) == 241
    assert np.median(difference) == pytest.approx(0.041, abs=0.001)
    assert np.quantile(difference, 0.9) == pytest.approx(0.12, abs=0.001)
    # Outputs that go with other neurons' inputs are anywhere on the circle.
    phase = found["phase"].values[clear.values]
    turned = phase[:, 0] + phase[:, 1] - np.roll(phase[:, 2], 1)
    assert np.median(np.abs(np.angle(np.exp(1j * turned)))) > 1


@pytest.fixture(scope="module")
def planted_net():
    c, s = 2 * np.cos(0.4), 2 * np.sin(0.4)
    both = {"a_c": c, "a_s": s, "b_c": 2 * np.cos(-1.0), "b_s": 2 * np.sin(-1.0)}
    noise = np.random.default_rng(0).normal(size=2 * P - 1)
    neurons = [
        Planted(of_operands=both, bias=9.0, writes=wave(OPERAND_K, 3, -0.6)),
        Planted(of_operands=both, bias=9.0, writes=wave(OPERAND_K, 3, 2.4)),
        Planted(of_operands=both, bias=9.0, writes=wave(3, 3, 2.4)),
        Planted(wave(3, 1, 0.2), bias=5.0, writes=wave(3, 1, 0.2)),
        Planted(lambda t: noise[t % P], bias=9.0, writes=wave(3, 1, 0.2)),
        Planted(of_operands=both, bias=-9.0),
    ]
    return planted(neurons), mn.tasks.modular_addition(P)


def test_planted_shares(planted_net):
    found = frequency_share(*planted_net).sel(layer=1)
    np.testing.assert_allclose(found["explained"][:4], 1)
    np.testing.assert_array_equal(found["dominant"][:4], [4, 4, 4, 3])
    # A function of a + b without order has a share of each frequency, and only of a + b's waves.
    power = np.abs(np.fft.rfft(np.random.default_rng(0).normal(size=2 * P - 1)[:P]))[1:] ** 2
    np.testing.assert_allclose(found["share"][4], power / power.sum(), rtol=1e-5)
    assert found["status"][5] == "constant"
    assert np.isnan(found["explained"][5])
    assert found["n_neurons"].values.tolist()[2:4] == [1 + int(power.argmax() == 2), 3]
    assert int(found["n_neurons"].sum()) == 5


def test_planted_phases_add_up_or_do_not(planted_net):
    found = phase_sums(*planted_net).sel(layer=1)
    np.testing.assert_allclose(found["phase"][0], [0.4, -1.0, -0.6], atol=1e-6)
    np.testing.assert_allclose(found["difference"][:2], [0, -3.0], atol=1e-6)
    np.testing.assert_allclose(found["power"][:2], 1)
    assert found["status"][:3].values.tolist() == ["one frequency", "one frequency", "several"]
    assert np.isnan(found["difference"][2])
    # A wave in a + b is the same on average over b, whatever a is.
    assert found["status"][3] == "constant"
    assert found["phase"][3, :2].isnull().all()
    after = phase_sums(*planted_net, of="hidden").sel(layer=1)
    np.testing.assert_allclose(after["phase"][0], found["phase"][0], atol=1e-6)
    assert after["status"][5] == "constant"


def test_other_tasks_are_refused():
    model = mn.load("adder-gptj")
    for measure in (frequency_share, phase_sums):
        with pytest.raises(MechnumError, match="addition does not go round"):
            measure(model, mn.tasks.addition(range(4)))


def test_an_unknown_state_is_refused(unchecked, planted_net):
    with pytest.raises(MechnumError, match="of='post' is not known"):
        phase_sums(*planted_net, of="post")
