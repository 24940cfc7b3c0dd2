from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mechnum.errors import MechnumError
from mechnum.training.recipes import RECIPES, find_recipe
from tests.training import tiny


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_settings_survive_json_and_hold_no_addresses(recipe):
    settings = recipe.settings()
    assert json.loads(json.dumps(settings)) == settings
    assert "0x" not in json.dumps(settings)


def test_settings_change_with_what_decides_the_weights():
    changed = [
        replace(tiny.CLOCK, seed=1),
        replace(tiny.CLOCK, learning_rate=2e-2),
        replace(tiny.CLOCK, data=tiny.ADDER.data),
        replace(tiny.CLOCK, net=tiny.ADDER.net),
        replace(tiny.CLOCK, betas=(0.9, 0.99)),
    ]
    assert all(recipe.settings() != tiny.CLOCK.settings() for recipe in changed)


def test_settings_do_not_change_with_the_card_s_words():
    assert replace(tiny.CLOCK, about="x", good_for="y").settings() == tiny.CLOCK.settings()


def test_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(MechnumError, match="choose from clock-113, clock-59"):
        find_recipe("adder-gpt")
