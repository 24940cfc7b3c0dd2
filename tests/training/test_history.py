"""The history of a net: where its log, checkpoints and training pairs are found, and where not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.training import history_of, recipes, train
from mechnum.training.data import split
from tests.training import tiny


def test_a_bundled_net_brings_its_log_and_its_training_pairs():
    found = history_of("clock-59")
    recipe = recipes.CLOCK_59
    expected = split(recipe.data(), recipe.train_fraction, recipe.seed).train.numpy()
    np.testing.assert_array_equal(found.trained_on, expected)
    assert found.scores is not None
    assert int(found.scores["step"][-1]) == recipe.steps
    assert found.checkpoints == {}


def test_the_run_in_a_model_s_folder_is_found(tmp_path, monkeypatch):
    from dataclasses import replace

    recipe = replace(tiny.CLOCK, checkpoint_every=5, snapshot_every=5, seed=3)
    monkeypatch.setitem(recipes.RECIPES, "tiny-clock", tiny.CLOCK)
    train(recipe, tmp_path / "net" / "training")
    found = history_of(tmp_path / "net")
    assert list(found.checkpoints) == [0, 5, 10]
    # The run's seed, not that of the recipe of this name.
    expected = split(recipe.data(), recipe.train_fraction, 3).train.numpy()
    np.testing.assert_array_equal(found.trained_on, expected)
    mn.load(found.checkpoints[5])
    numbered = history_of("clock-59", tmp_path / "net" / "training" / "snapshots")
    assert list(numbered.checkpoints) == [0, 5, 10]
    assert numbered.scores is None


def test_unknown_recipes_have_no_training_pairs(tmp_path):
    card = {"recipe": {"name": "other", "seed": 0, "train_fraction": 0.5, "data": "x"}}
    (tmp_path / "card.json").write_text(json.dumps(card))
    assert history_of(tmp_path).trained_on is None
    (tmp_path / "card.json").write_text("[")
    with pytest.raises(MechnumError, match="is not a model card"):
        history_of(tmp_path)


def test_folders_without_a_history_are_refused(tmp_path):
    with pytest.raises(MechnumError, match="there is no folder"):
        history_of("clock-59", tmp_path / "nowhere")
    with pytest.raises(MechnumError, match="holds neither a log nor checkpoints"):
        history_of("clock-59", tmp_path)
