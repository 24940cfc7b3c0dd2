"""Similarity of whole models: copies are the same, permuted numbers are not, controls read none."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.circuits.instruments.similarity import DIGITS, Chosen, _digit_rows, measure_similarity
from mechnum.errors import MechnumError
from mechnum.models import load_table
from tests.fixtures import llama
from tests.models.encoders import encoder_folder
from tests.probes.planted import circles

N = 40


def net(order=None, name="net", n_layers=1):
    """A Llama whose number embeddings are circles, in another order where one is given."""
    model = llama(pad_token_id=None, num_hidden_layers=n_layers)
    numbers = np.arange(N) if order is None else np.asarray(order)
    rows = circles(numbers, (20, 10, 5, 2), 32, 0.02) + 0.1
    with torch.no_grad():
        model.model.embed_tokens.weight[:N].copy_(torch.from_numpy(rows))
    return mn.wrap(model, name=name)


def measured(*models, draws=9, **options):
    return measure_similarity(
        [one if isinstance(one, Chosen) else Chosen(one) for one in models],
        range(N),
        top=6,
        draws=draws,
        **options,
    )


@pytest.fixture(scope="module")
def three():
    permuted = np.random.default_rng(5).permutation(N)
    return measured(net(), net(name="copy"), net(permuted, "permuted"))


def test_copies_are_the_same_and_permuted_numbers_are_not(three):
    pairs = three["pairs"].to_dataset()
    assert list(zip(pairs["a"].values, pairs["b"].values, strict=True)) == [
        ("net, embedding", "copy, embedding"),
        ("net, embedding", "permuted, embedding"),
        ("copy, embedding", "permuted, embedding"),
    ]
    np.testing.assert_allclose(pairs["value"].isel(pair=0), 1, atol=1e-9)
    assert (pairs["p"].sel(null="shuffled").isel(pair=0) == 0.1).all()
    cosine = pairs["value"].sel(measure="cosine pearson").isel(pair=[1, 2])
    assert (np.abs(cosine) < 0.15).all()
    assert three.attrs["numbers"] == "0 to 39"
    assert "net has no tokenizer" in json.loads(three.attrs["left_out"])["random tokens"]
    everything = three["map"].to_dataset()
    assert everything.sizes["place"] == 3 * 3 + 1
    assert everything["model"].values.tolist()[-1] == DIGITS


def test_probes_are_read_on_the_copy_and_on_no_control(three):
    found = three["transfer"]["number"].to_dataset()
    accuracy = found["accuracy"].sel(trained_on="net, embedding")
    own, on_copy = (float(accuracy.sel(tested_on=f"{name}, embedding")) for name in ("net", "copy"))
    assert own == on_copy
    assert own > 0.5
    others = ["permuted, embedding", "untrained net, embedding", "Gaussian rows for copy"]
    assert (accuracy.sel(tested_on=others) < 0.3).all()
    shuffled = found["shuffled"].sel(trained_on="net, embedding")
    assert float(shuffled.sel(tested_on="copy, embedding")) < 0.3
    assert shuffled.sel(tested_on="net, embedding").isnull()


def test_one_model_is_compared_with_itself_place_by_place():
    found = measured(Chosen(net(n_layers=3), "layer 1"), draws=3)
    pairs = found["pairs"].to_dataset()
    assert set(pairs["a"].values) == {"net, layer 1"}
    names = ["net, embedding", "net, layer 0", "net, layer 2", "net, unembedding"]
    assert pairs["b"].values.tolist() == names
    table = found["map"]["value"].sel(place="net, layer 1")
    for name, own in zip(names, pairs["value"], strict=True):
        np.testing.assert_allclose(own, table.sel(other=name), atol=1e-12)
    assert "transfer" not in found.children


def test_as_many_frequencies_as_there_are_are_no_match_and_that_is_said():
    found = measure_similarity([Chosen(net())], range(N), top=N // 2, draws=3)
    assert np.isnan(found["pairs"]["value"].sel(measure="spectra")).all()
    left_out = json.loads(found.attrs["left_out"])
    assert left_out["match of frequencies"].startswith(f"{N} numbers have {N // 2} frequencies")


def test_other_families_are_compared_by_their_embedding(tmp_path):
    table = load_table(encoder_folder(tmp_path, 30))
    found = measured(net(), table, draws=3, transfer=False)
    assert found.attrs["numbers"] == "0 to 29"
    pair = found["pairs"].to_dataset().isel(pair=0)
    rows = table.W_E[4:34].double().numpy()
    rows -= rows.mean(axis=0)
    own = net().decoder.weights.W_E[:30].double().numpy()
    own -= own.mean(axis=0)
    gram, other = rows @ rows.T, own @ own.T
    cka = np.vdot(gram, other) / np.linalg.norm(gram) / np.linalg.norm(other)
    assert float(pair["value"].sel(measure="cka")) == pytest.approx(cka, abs=1e-9)
    with pytest.raises(MechnumError, match="has one table of numbers, its embedding"):
        measured(table)


def test_digits_alone_are_spelling():
    rows = _digit_rows(range(-2, 13)).values
    assert (np.unique(rows, axis=0, return_counts=True)[1] == 1).all()
    same = rows @ rows.T
    seven, twelve, two, ten = 7 + 2, 12 + 2, 2 + 2, 10 + 2
    # No tens digit in both, or the same one; 2 and −2 differ by the sign.
    assert (same[seven, two], same[twelve, two], same[twelve, ten]) == (1, 1, 1)
    assert same[two, 0] == 2


def test_what_cannot_be_compared_is_refused():
    model = net()
    for match, call in {
        "there are no models": lambda: measure_similarity([]),
        "net, embedding is there twice: name another place of it": lambda: measured(model, model),
        "net has no place 'layer 7': use one of": lambda: measured(Chosen(model, "layer 7")),
        "no 4 numbers in a row": lambda: measure_similarity([Chosen(model)], range(62, 90)),
    }.items():
        with pytest.raises(MechnumError, match=match):
            call()


@pytest.mark.slow
def test_adders_share_what_they_started_from_and_scratch_found_little_of_it():
    models = [mn.load(name) for name in ("adder-gptj", "adder-pythia", "adder-scratch")]
    before = [copy.deepcopy(model.wrapped.state_dict()) for model in models]
    found = measure_similarity([Chosen(model) for model in models], range(100), draws=19)
    cosine = found["pairs"]["value"].sel(measure="cosine pearson").values
    assert cosine[0] > 0.98
    assert (cosine[1:] < 0.6).all()
    number, answer = (found["transfer"][name].to_dataset() for name in ("number", "answer"))
    there = {"trained_on": "adder-gptj, layer 3", "tested_on": "adder-pythia, layer 3"}
    assert float(number["accuracy"].sel(there)) > 0.9
    assert float(answer["accuracy"].sel(there)) > 0.9
    for control in (number, answer):
        assert (control["accuracy"].where(control["kind"] != "model") < 0.15).sum() > 0
        assert float(control["accuracy"].where(control["kind"] != "model").max()) < 0.15
    assert "started from helices" in json.loads(found.attrs["about"])["adder-gptj"]
    for model, state in zip(models, before, strict=True):
        after = model.wrapped.state_dict()
        assert all(torch.equal(after[name], own) for name, own in state.items())
