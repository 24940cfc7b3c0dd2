"""What probes read of texts, tasks and ordinals, beside the same computed step by step."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechnum as mn
from mechnum.circuits.instruments import probe_ordinals
from mechnum.circuits.instruments.probe import kinds_of_text, measure_numbers, number_probes
from mechnum.circuits.instruments.probe_ordinals import measure_ordinals
from mechnum.circuits.instruments.probe_task import measure_task
from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    StateTable,
    collect_states,
    layer_tables,
    leave_one_value_out,
    probe_curves,
)
from mechnum.probes.tables import hold_out
from mechnum.tasks.contexts import Context, context_prompts, ordinal_prompts
from tests.probes.texts import reader

from .probed import LAYERS, measured, numbers


@pytest.mark.slow
def test_the_paper_stands_beside_a_thousand_numbers_alone():
    found = measured().copy()
    assert int(found.attrs["n_numbers"]) != 1000
    assert with_published(found, "universal_numbers", "contexts", reader()) is found
    found.attrs["n_numbers"] = 1000
    asked = with_published(found, "universal_numbers", "contexts", reader())["published"]
    assert asked["measured"].notnull().any()


@pytest.mark.slow
def test_all_parts_are_there():
    found = measured()
    assert set(found.children) == {
        "probes", "lenses", "controls", "spelling", "residues", "sines", "transfer",
    }  # fmt: skip
    assert set(found["transfer"].children) == {
        "layers", "contexts", "kinds", "other_layers", "other_contexts",
    }  # fmt: skip
    assert "left_out" not in found.attrs
    assert found.attrs["n_states"] == sum(group.places.numel() for group in numbers())
    controls = found["controls"].to_dataset()
    assert set(controls["control"].values) == {
        "states", "templates of training", "one token earlier", "untrained net",
        "permuted numbers",
    }  # fmt: skip
    seen = probe_curves(
        {"fourier": FourierRegressionProbe()},
        layer_tables(collect_states(reader(), numbers(), LAYERS)),
        template_share=0.0,
    )["accuracy"]
    own = controls["accuracy"].sel(control="templates of training", probe="fourier")
    np.testing.assert_array_equal(own, seen.sel(probe="fourier"))
    assert (controls["accuracy"].sel(control="permuted numbers") < 0.5).all()
    best = max(LAYERS, key=lambda layer: explained(layer))
    assert found.attrs["layer"] == best


def explained(layer: int) -> float:
    table = layer_tables(collect_states(reader(), numbers(), LAYERS))[layer]
    train = hold_out({layer: table}).train(table)
    probe = FourierRegressionProbe(numbers=range(30)).fit(train.states, train.values)
    return float(probe.r2_.mean())


@pytest.mark.slow
def test_accuracies_are_those_of_a_plain_loop():
    tables = layer_tables(collect_states(reader(), numbers(), LAYERS))
    held = hold_out(tables)
    for layer in LAYERS:
        train, test = held.train(tables[layer]), held.test(tables[layer])
        probe = FourierRegressionProbe(numbers=range(30)).fit(train.states, train.values)
        own = measured()["probes"].to_dataset().sel(probe="fourier", layer=layer)
        assert float(own["accuracy"]) == probe.score(test.states, test.values)
        controls = measured()["controls"].to_dataset()
        states = controls.sel(control="states", probe="fourier", layer=layer)
        assert float(states["accuracy"]) == float(own["accuracy"])


@pytest.mark.slow
def test_kept_states_are_found_again_and_others_replaced(tmp_path, monkeypatch):
    first = measure_numbers(reader(), numbers(), LAYERS, ("linear",), folder=tmp_path)
    kept = {f"{name}.safetensors" for name in ("numbers", "one_token_earlier", "untrained")}
    assert {file.name for file in tmp_path.iterdir()} == kept
    with monkeypatch.context() as patched:
        patched.setattr(mn.models.Model, "run", None)
        again = measure_numbers(reader(), numbers(), LAYERS, ("linear",), folder=tmp_path)
    assert again.identical(first)
    other = measure_numbers(reader(), numbers(), [1], ("linear",), folder=tmp_path)
    assert other.identical(measure_numbers(reader(), numbers(), [1], ("linear",)))
    assert {file.name for file in tmp_path.iterdir()} == kept


@pytest.mark.slow
def test_what_texts_do_not_allow_is_left_out():
    texts = context_prompts(reader(), ("time",), range(40), 4)
    found = measure_numbers(reader(), texts, [0, 1], ("fourier",))
    left = json.loads(found.attrs["left_out"])
    assert left["transfer/contexts"] == "there is one context alone: give two or more to compare"
    assert "the last: collect them as well" in left["lenses"]
    assert set(left) == {"lenses", "transfer/contexts", "transfer/other_contexts", "transfer/kinds"}


@pytest.mark.slow
def test_texts_that_begin_with_a_number_have_no_token_before_it():
    own = Context("list", tuple(f"{n} apples and 12 pears" for n in range(1, 9)))
    texts = context_prompts(reader(), (own,), range(10), 12)
    found = measure_numbers(reader(), texts, [0, 1], ("fourier",))
    assert "begin with a number" in json.loads(found.attrs["left_out"])["one token earlier"]
    assert "one token earlier" not in found["controls"]["control"].values


def test_kinds_of_text_have_as_many_rows():
    def table(n, first):
        return StateTable(np.zeros((n, 2)), np.arange(n), np.full(n, first))

    found = kinds_of_text({"arithmetic": table(5, 0), "time": table(4, 1), "food": table(6, 2)})
    assert [len(own) for own in found.values()] == [5, 5]
    assert set(found["natural"].templates.tolist()) <= {1, 2}


def test_unknown_probes_are_refused():
    for names, message in ((["sine"], "no probe 'sine': choose of linear"), ([], "is no probe:")):
        with pytest.raises(MechnumError, match=message):
            number_probes(names, 1, 0)


def test_operands_are_read_from_their_own_tokens_on():
    """The modular net: a at its token, neither b nor the answer before b is there."""
    model = mn.load("clock-59")
    task = mn.tasks.parse(str(model.default_task))
    found = measure_task(model, task, 500, layers=[-1, 0])["task_probes"].to_dataset()
    read = found["accuracy"].sel(probe="fourier")
    assert float(read.sel(variable="a", position="a", layer=-1)) > 0.9
    assert float(read.sel(variable="b", position="a").max()) < 0.1
    assert float(read.sel(variable="answer", position="end", layer=0)) > 0.9
    assert float(found["permuted"].sel(probe="fourier", layer=0).max()) < 0.15
    # Indicators of tokens say nothing of a token that was never seen.
    assert float(found["tokens"].sel(variable="a").max()) < 0.1
    with pytest.raises(MechnumError, match="has no layer 7"):
        measure_task(model, task, layers=[7])


@pytest.mark.slow
def test_ordinals_are_read_one_by_one(monkeypatch):
    probes = {"linear": LinearNumberProbe()}
    monkeypatch.setattr(probe_ordinals, "ordinal_probes", lambda n, seed: probes)
    found = measure_ordinals(reader(), ("weekdays",), [0, 2], permutations=3)
    own = found["ordinals/weekdays"].to_dataset()
    tables = layer_tables(collect_states(reader(), ordinal_prompts(reader()), [0, 2]))
    for layer in (0, 2):
        direct = leave_one_value_out(probes["linear"], tables[layer], permutations=3)
        cell = own.sel(probe="linear", layer=layer)
        assert int(cell["n_right"]) == int(direct["n_right"]) == int(cell["right"].sum())
        assert float(cell["p"]) == float(direct["p"])
    assert own["word"].values[0] == "Monday"
    assert found.attrs["model_fingerprint"] == own.attrs["model_fingerprint"]


@pytest.mark.slow
def test_adder_has_operands_and_answer():
    model = mn.load("adder-gptj")
    task = mn.tasks.parse(str(model.default_task))
    found = measure_task(model, task)["task_probes"].to_dataset()
    read = found["accuracy"].sel(probe="fourier")
    assert float(read.sel(variable="b", position="b", layer=0)) > 0.95
    assert float(read.sel(variable="answer", position="end", layer=3)) > 0.95
    assert float(read.sel(variable="answer", position="a").max()) < 0.1


@pytest.mark.slow
def test_ordinals_with_all_probes():
    own = measure_ordinals(reader(), ("weekdays",), [0], permutations=1)["ordinals/weekdays"]
    assert own["probe"].values.tolist() == ["linear", "fourier", "param-sin"]
    assert np.isnan(float(own["p"].sel(probe="param-sin", layer=0)))
