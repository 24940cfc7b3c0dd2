"""The neuron report puts together what its rooms measure, and says what it leaves out."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.circuits.instruments.neurons import measure_neurons
from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.native import NativeConfig, build_native, native_tensors
from mechnum.neurons import fit, formula, heuristics, operand_maps
from mechnum.report.saving import page_of
from tests.neurons.measured import SIZE, TOP, small_report
from tests.patching.native import wrapped


@pytest.fixture(scope="module")
def found():
    return small_report()


def test_rows_are_what_each_description_says_of_the_neuron(found):
    """Recomputed here neuron by neuron."""
    model, task = mn.load("adder-gptj"), mn.tasks.addition(range(SIZE))
    table = found["neurons"].to_dataset()
    names = [str(name) for name in table["node"].values]
    assert len(set(names)) == TOP
    fitted = fit(model, task)
    bag = heuristics(operand_maps(model, task, names))
    for row, name in enumerate(names):
        layer, neuron = (int(part) for part in name.removeprefix("neuron ").split("."))
        own = fitted.sel(layer=layer, neuron=neuron)
        assert table["formula"].values[row] == formula(own)
        for column in ("r2", "nrmse", "sum_share"):
            assert table[column].values[row] == pytest.approx(float(own[column]))
        largest = own["amplitude"].sel(variable="a+b").idxmax("period")
        if own["sum_share"] >= 0.01 and own["r2"] > 0:
            assert table["t_in"].values[row] == float(largest)
        else:
            assert np.isnan(table["t_in"].values[row])
            assert table["no_period"].values[row]
        assert table["heuristics"].values[row] == str(bag["label"].values[row])
    top = found["rank/top"].to_dataset()
    np.testing.assert_array_equal(table["total"], top["total"].mean("pair"))
    np.testing.assert_array_equal(table["direct_q"], top["direct_q"])


def test_output_periods_are_those_of_the_answers_tokens(found):
    """By a plain transform of W_out · W_U over the tokens of 0 … 38."""
    weights = mn.load("adder-gptj").decoder.weights
    for name, t_out in zip(
        found["neurons"]["node"].values, found["neurons"]["t_out"].values, strict=True
    ):
        layer, neuron = (int(part) for part in str(name).removeprefix("neuron ").split("."))
        profile = weights.blocks[layer].mlp.W_out[neuron] @ weights.W_U[:, : 2 * SIZE - 1]
        power = torch.fft.rfft(profile.double()).abs()[1:]
        assert t_out == pytest.approx((2 * SIZE - 1) / (1 + int(power.argmax())))


def test_every_part_is_there_and_says_how_it_was_made(found):
    expected = {"/adjudication", "/kept", "/replaced", "/mlps"}
    expected |= {"/periods", "/maps", "/heuristics", "/knock_out", "/by_prompt", "/prompts"}
    assert expected <= set(found.groups)
    assert found.attrs["n_chosen_on"] + found.attrs["n_held_out"] == found.attrs["n_pairs"]
    assert found.attrs["model"] == "adder-gptj"
    assert "left_out" not in found.attrs


@pytest.mark.slow
def test_a_grokked_net_reads_and_writes_its_key_frequencies():
    model, task = mn.load("clock-113"), mn.tasks.modular_addition(113)
    accuracy = task.accuracy(model)
    pairs = task.pairs_at_most(model, 40, seed=0, accuracy=accuracy)
    found = measure_neurons(model, task, pairs, accuracy, top=30)
    assert float(found["periods"]["agreement"]) == 1
    assert {round(113 / t) for t in found["neurons"]["t_in"].values} == {5, 21, 53}
    explained = found["frequencies"]["explained"].values
    assert np.mean(explained >= 0.85) == pytest.approx(0.688, abs=0.001)
    left_out = json.loads(found.attrs["left_out"])
    assert left_out["knock_out"].startswith("no neuron matches a heuristic")


def untrained(p: int = 7):
    """A random net that adds modulo p as well as chance."""
    config = NativeConfig(1, 2, 16, 8, 24, n_ctx=3, d_vocab=p + 1, d_vocab_out=p)
    net = build_native(config, seed=1)
    return wrapped(config, native_tensors(net, config), "untrained"), mn.tasks.modular_addition(p)


def test_what_cannot_be_measured_is_left_out_with_its_reason(monkeypatch):
    """As where no neuron matches a heuristic; the rest is there, and the page says why."""

    def refused(*args, **options):
        raise MechnumError("no neuron matches a heuristic: find heuristics in other neurons")

    for name in ("knock_out", "knock_out_by_prompt", "periods"):
        monkeypatch.setattr(f"mechnum.circuits.instruments.neurons.{name}", refused)
    model, task = untrained()
    pairs = task.pairs(model, 12, correct_only=False)
    accuracy = task.accuracy(model)
    found = measure_neurons(model, task, pairs, accuracy, top=5, fit_periods=(7.0, 3.5))
    left_out = json.loads(found.attrs["left_out"])
    assert set(left_out) == {"knock_out", "by_prompt", "periods"}
    assert not {"/knock_out", "/by_prompt", "/periods"} & set(found.groups)
    assert np.isnan(found["neurons"]["t_in"]).all()
    page = page_of(found).html()
    for name in ("knock-outs by heuristic", "knock-outs by prompt", "periods read and written"):
        assert f"Left out: {name}" in page


@pytest.mark.slow
def test_a_task_with_one_operand_has_a_report_without_sums():
    model = mn.load("adder-gptj")
    task = mn.tasks.operation("x-a=0", range(30), template="{a}+0=")
    accuracy = task.accuracy(model)
    pairs = task.pairs_at_most(model, 10, seed=0, correct_only=False)
    found = measure_neurons(model, task, pairs, accuracy, top=3)
    assert set(found["fits"]["variable"].values) == {"a"}
    assert found["neurons"]["sum_share"].isnull().all()
    assert {"periods", "mlps"} <= set(json.loads(found.attrs["left_out"]))
    page = page_of(found).html()
    assert "Left out: periods read and written" in page
    assert "a+b share" not in page


def test_models_without_neurons_are_refused():
    model, task = untrained()
    decoder = model.decoder
    blocks = tuple(replace(block, mlp=None, ln2=None) for block in decoder.weights.blocks)
    bare = Decoder(
        replace(model.spec, d_mlp=0), replace(decoder.weights, blocks=blocks), decoder.rotary
    )
    model = replace(model, decoder=bare, spec=bare.spec)
    pairs = task.pairs(model, 12, correct_only=False)
    with pytest.raises(MechnumError, match="has no MLPs"):
        measure_neurons(model, task, pairs, task.accuracy(model), top=5)
