"""A net whose neurons each carry one heuristic loses just the prompts for which it holds."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.neurons import heuristics, knock_out, knock_out_by_prompt, parse_heuristic
from mechnum.neurons.bag import knock_outs
from mechnum.tasks import modular_addition
from mechnum.tasks.states import activations_of
from tests.neurons.adder import D_MLP, LAYERS, P, helped_adder

TASK = modular_addition(P)
ONE = {(1, 6): "a ≡ 3 (mod 7)"}
SEVERAL = {
    (0, 4): "b in [0, 10)",
    (0, 9): "a ≡ 3 (mod 7)",
    (1, 6): "a like ..7",
    (1, 7): "b ≡ 2 (mod 9)",
}


def found_in(model, **changes):
    """Heuristics of all neurons of the net, from maps made here; it has one group of prompts."""
    (prompts,) = TASK.prompts(model)
    activation = activations_of(model, [prompts], "mlp_hidden").transpose(0, 2, 1)
    values = activation.reshape(LAYERS * D_MLP, -1)
    layer, neuron = np.divmod(np.arange(len(values)), D_MLP)
    maps = xr.Dataset(
        dict.fromkeys(("activation", "logit"), (("node", "prompt"), values)),
        coords={
            "node": [f"neuron {i}.{j}" for i, j in zip(layer, neuron, strict=True)],
            "layer": ("node", layer),
            "neuron": ("node", neuron),
            **{name: ("prompt", prompts.variables[name].numpy()) for name in ("a", "b", "answer")},
        },
    )
    # What is written is no matter here: nothing of the result.
    return heuristics(maps.assign(logit=0 * maps["logit"]), **changes)


@pytest.fixture(scope="module", params=[ONE, SEVERAL], ids=["one", "several"])
def helpers(request):
    return request.param


@pytest.fixture(scope="module")
def model(helpers):
    return helped_adder(helpers)


@pytest.fixture(scope="module")
def found(model):
    return found_in(model)


def test_the_net_does_what_it_is_said_to_do(model, helpers, found):
    accuracy = TASK.accuracy(model)
    a, b = (accuracy.variables[name] for name in ("a", "b"))
    np.testing.assert_array_equal(accuracy.correct, a + b < P)
    labelled = found["label"].to_series()
    for (layer, neuron), words in helpers.items():
        assert words in labelled.pop(f"neuron {layer}.{neuron}").split("; ")
    assert (labelled == "").all()


def test_only_related_prompts_are_lost(model, helpers, found):
    table = knock_out(model, TASK, found, n=60, seed=1)
    kinds = {parse_heuristic(words).kind for words in helpers.values()}
    for kind in kinds:
        own = table.sel(kind=kind)
        assert own["accuracy"].sel(prompts="related", ablated="heuristic") == 0
        assert own["accuracy"].sel(prompts="unrelated", ablated="heuristic") == 1
        assert (own["n"] <= 60).all()
        assert (own["n"] > 20).all()
        assert (own["low"] <= own["accuracy"]).all()
        assert (own["accuracy"] <= own["high"]).all()
        assert own["high"].sel(prompts="related", ablated="heuristic") > 0.01
        control = own["accuracy"].sel(ablated="random")
        # One helper in dozens of neurons is rarely drawn, and then matters for some prompts alone.
        assert (control == 1).all() if helpers == ONE else (control > 0.9).all()
    if helpers == ONE:
        none = table.drop_sel(kind=["modulo"])
        assert none["accuracy"].isnull().all()
        assert (none["n"] == 0).all()
        assert (table["n_heuristics"] == [0, 1, 0, 0, 0, 0]).all()
        assert (table["n_neurons"].sel(kind="modulo") == 1).all()
    assert table.attrs["n_correct"] == P * (P + 1) // 2
    assert table.attrs["task"] == TASK.name
    assert table.attrs["threshold"] == 0.6


@pytest.mark.parametrize("helpers", [SEVERAL], indirect=True, ids=["several"])
def test_trials_are_spread_over_the_heuristics_of_a_kind(found, model, monkeypatch):
    """Two residues share 20 trials, 10 each, no prompt twice."""
    asked = []

    def noted(model, prompts, rows, ablated, values):
        asked.append(list(zip(rows.tolist(), map(np.ndarray.tolist, ablated), strict=True)))
        return np.ones(len(rows), dtype=bool)

    monkeypatch.setattr(knock_outs, "answered_right", noted)
    table = knock_out(model, TASK, found, n=20)
    assert table["n"].sel(kind="modulo", prompts="related") == 20
    assert table["n_matching"].sel(kind="modulo") == 2
    own = [(row, tuple(map(tuple, sites))) for row, sites in asked[0]]
    for neuron in ((0, 9), (1, 7)):
        rows = [row for row, sites in own if sites == (neuron,)]
        # 10 related and 10 unrelated ones.
        assert len(rows) == 20 == len(set(rows))


def test_each_prompt_loses_its_heuristics(model, helpers, found):
    """A prompt is lost exactly where one of the planted heuristics holds for it."""
    table = knock_out_by_prompt(model, TASK, found, n=1000, draws=3, seed=2)
    numbers = {"a": table["a"].values, "b": table["b"].values, "result": table["answer"].values}
    assert table.sizes["prompt"] == P * (P + 1) // 2
    held = np.stack([parse_heuristic(words).holds(numbers) for words in helpers.values()])
    own = table["correct"].sel(condition="heuristics")
    np.testing.assert_array_equal(own, ~held.any(axis=0))
    assert own.mean() == table["accuracy"].sel(condition="heuristics")
    assert 0.05 < own.mean() < 0.95
    controls = table.drop_sel(condition=["heuristics"])
    assert list(controls["condition"].values) == ["random 1", "random 2", "random 3"]
    assert (controls["accuracy"] > 0.95).all()
    assert (table["n_neurons"] >= held.any(axis=0)).all()
    assert (table["n_neurons"].values[held.any(axis=0)] > 0).all()


@pytest.mark.parametrize("helpers", [SEVERAL], indirect=True, ids=["several"])
def test_at_most_so_many_in_each_layer(model, found):
    # The weaker one of two neurons in a layer stays, so that some prompts lose one of two.
    few = knock_out_by_prompt(model, TASK, found, per_layer=1, n=1000, draws=1)
    many = knock_out_by_prompt(model, TASK, found, per_layer=2, n=1000, draws=1)
    assert few["n_neurons"].max() <= LAYERS < many["n_neurons"].max()


@pytest.mark.parametrize("helpers", [ONE], indirect=True, ids=["one"])
def test_means_instead_of_zeros(model, found):
    """The mean of a helper is a part of its help: 5 too much becomes 5 × (1 − share) too much."""
    table = knock_out(model, TASK, found, value="mean", n=50).sel(kind="modulo")
    share = np.mean(np.arange(P) % 7 == 3)  # 3, 10, 17 of 23
    assert 5 * (1 - share) > 0.5
    assert 5 * share > 0.5
    # Now the others have help that they do not need.
    assert (table["accuracy"].sel(ablated="heuristic") == 0).all()


def test_seeds(model, found):
    one = knock_out(model, TASK, found, n=10, seed=3)
    xr.testing.assert_identical(one, knock_out(model, TASK, found, n=10, seed=3))
    by_prompt = [knock_out_by_prompt(model, TASK, found, n=10, seed=seed) for seed in (3, 3, 4)]
    xr.testing.assert_identical(*by_prompt[:2])
    assert not by_prompt[0]["a"].equals(by_prompt[2]["a"])


def test_a_given_accuracy_is_not_measured_again(model, found, monkeypatch):
    accuracy = TASK.accuracy(model)
    expected = knock_out(model, TASK, found, n=10)
    monkeypatch.setattr(type(TASK), "accuracy", lambda *_: pytest.fail("measured again"))
    given = knock_out(model, TASK, found, n=10, accuracy=accuracy)
    xr.testing.assert_identical(given, expected)


def test_stored_tables_do(model, found, tmp_path):
    found.to_netcdf(tmp_path / "found.nc")
    stored = xr.load_dataset(tmp_path / "found.nc")
    xr.testing.assert_identical(
        knock_out(model, TASK, stored, n=10), knock_out(model, TASK, found, n=10)
    )


def test_refusals(model, found, helpers, unchecked):
    accuracy = TASK.accuracy(model)
    never = found.assign(matched=found["matched"] & False, match=found["match"] & False)
    wrong = accuracy.select((~accuracy.correct).nonzero().flatten())
    elsewhere = found.assign_coords(node=[f"neuron 5.{i}" for i in range(LAYERS * D_MLP)])
    for arguments, message in [
        ({"found": never}, "no neuron matches a heuristic"),
        ({"found": found["score"].to_dataset()}, "this is no table of heuristics"),
        ({"found": elsewhere}, "neuron 5.0 does not exist"),
        ({"value": "half"}, "there is no value 'half' to knock out with"),
        ({"n": 0}, "n is 0"),
        ({"seed": -1}, "the seed is -1"),
        ({"accuracy": wrong}, "the accuracy given is of 253 prompts, but .* has 529"),
    ]:
        with pytest.raises(MechnumError, match=message):
            knock_out(**{"model": model, "task": TASK, "found": found, **arguments})
        if "n" not in arguments:
            with pytest.raises(MechnumError, match=message):
                knock_out_by_prompt(**{"model": model, "task": TASK, "found": found, **arguments})
    with pytest.raises(MechnumError, match="per_layer is 0"):
        knock_out_by_prompt(model, TASK, found, per_layer=0)
