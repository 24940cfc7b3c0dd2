"""Recipes say what they mean: what is wrong in one is one line, with a suggestion."""

from __future__ import annotations

import pytest

from mechnum.circuits.running.instruments import BUILT_IN, find_instrument
from mechnum.circuits.running.recipe import parse_recipe
from mechnum.circuits.running.steps import steps_of
from mechnum.errors import MechnumError
from mechnum.toml_files import toml_value

HEAD = {"title": "T", "question": "Q?", "paper": "P", "model": "clock-59"}


def step(name="one", instrument="clock", **more):
    return {"name": name, "title": "T", "shows": "S", "instrument": instrument, **more}


def recipe(*steps, **more):
    return parse_recipe({**HEAD, "steps": list(steps), **more}, "recipe.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"steps": [step()], "titel": "x"}, "there is no key 'titel': did you mean title?"),
        ({"steps": [step(nedes=[])]}, "there is no key 'nedes': did you mean needs?"),
        ({"steps": []}, "steps is"),
        ({"steps": [step()], "seed": "one"}, "seed is 'one': give a valid integer"),
        ({"steps": [step()], "n_pairs": True}, "n_pairs is True: give a valid integer"),
        ({"steps": [step()], "seed": -1}, "give a number greater than or equal to 0"),
        ({"steps": [step(), step()]}, "two steps are called one: give each its own name"),
        ({"steps": [step(name="A b")]}, "steps.0.name is 'A b'"),
        ({"steps": [step(needs=["two"]), step("two")]}, "step one needs a step that does not"),
        ({"steps": [step("one"), step("two", needs=["onee"])]}, "did you mean one?"),
        ({}, "steps is missing: add it"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file(content, message):
    with pytest.raises(MechnumError) as refused:
        parse_recipe({**HEAD, **content}, "recipe.toml")
    assert message in str(refused.value)
    assert str(refused.value).startswith("recipe.toml: ")
    assert "\n" not in str(refused.value)


def test_settings_are_the_step_s_own_else_the_recipe_s_else_the_instrument_s():
    made = recipe(
        step("clock", settings={"n_pairs": 12, "periods": [2, 5.5]}),
        step("helix", "helix"),
        step("pizza", "clock_pizza"),
        n_pairs=7,
        seed=3,
    )
    clock, helix, pizza = (one.settings for one in steps_of(made))
    assert (clock.n_pairs, clock.seed, clock.n_heads, clock.periods) == (12, 3, 20, (2, 5.5))
    assert (helix.n_pairs, helix.seed) == (7, 3)
    # It draws no pairs, and its triples have a seed of their own.
    assert not hasattr(pizza, "n_pairs")
    changed = made.changed({"seed": 4, "steps.clock.n_pairs": 5, "steps.helix.search": True})
    clock, helix, _ = (one.settings for one in steps_of(changed))
    assert (clock.n_pairs, clock.seed, helix.search) == (5, 4, True)
    assert made.seed == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_pair": 5}, "there is no setting 'n_pair': did you mean n_pairs?"),
        ({"n_pairs": "many"}, "n_pairs is 'many': give a valid integer"),
        ({"steps.clok.n_pairs": 5}, "there is no step 'clok': did you mean clock?"),
        ({"steps.clock.n_head": 5}, "there is no setting 'n_head': did you mean n_heads?"),
        ({"steps.clock.n_heads": 0}, "n_heads is 0: give a number greater than 0"),
        ({"steps.clock.n_heads": 2.5}, "n_heads is 2.5: give a valid integer"),
        ({"steps.clock.metric": "logits"}, "metric is 'logits': give 'logit_diff'"),
        ({"steps.clock": 5}, "there is no setting 'steps.clock'"),
        ({"steps.clock.seed": object()}, "give numbers, texts"),
        ({"model": "x"}, "there is no setting 'model'"),
    ],
)
def test_what_is_wrong_in_settings(given, message):
    with pytest.raises(MechnumError) as refused:
        steps_of(recipe(step("clock")).changed(given))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clokc", "there is no instrument 'clokc': did you mean clock?"),
        ("no.such:function", "cannot be imported"),
        ("json:dumps", "annotate its second parameter"),
        ("json:nothing", "cannot be imported"),
        ("tests.circuits.running.planted:step", "annotate its second parameter"),
    ],
)
def test_what_is_wrong_in_instruments(name, message):
    with pytest.raises(MechnumError, match=message) as refused:
        find_instrument(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_setting_has_a_default_and_a_description(name):
    fields = find_instrument(name).settings.model_fields
    assert all(field.description and not field.is_required() for field in fields.values())


def test_values_on_the_command_line():
    texts = ["50", "2.5", "true", "[2, 5]", "logit", "a+b", "", "1]", '"50"', "x = 1"]
    assert [toml_value(text) for text in texts] == [
        50, 2.5, True, [2, 5], "logit", "a+b", "", "1]", "50", "x = 1",
    ]  # fmt: skip
