"""The rescue experiment with nets that train in a moment: what it measures, and how it goes on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.circuits.instruments import rescue
from mechnum.errors import MechnumError
from mechnum.fourier.filtered_runs import answers
from mechnum.report import page_of, read_netcdf, save
from mechnum.report.sections.rescue import DISTANCES, distance_frame, filter_frame
from mechnum.training import loop
from mechnum.training.data import split
from tests.training import tiny

ARMS = {"scratch": tiny.SCRATCH, "rescued": tiny.RESCUED, "Fourier start": tiny.ADDER}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    recipes = rescue.rescue_recipes(2, 12, ARMS)
    out = tmp_path_factory.mktemp("rescue")
    return recipes, rescue.train_rescue(recipes, out), out


@pytest.fixture(scope="module")
def found(trained):
    return rescue.measure_rescue(*trained[:2])


def test_arms_share_seeds_steps_and_nothing_else():
    recipes = rescue.rescue_recipes(2, 12, ARMS)
    assert [(arm, seed) for arm, seed in recipes] == [(arm, s) for s in (0, 1) for arm in ARMS]
    assert {recipe.steps for recipe in recipes.values()} == {12}
    assert recipes["rescued", 1].seed == 1
    own = rescue.rescue_recipes()
    assert [recipe.name for (_, seed), recipe in own.items() if seed == 2] == list(
        rescue.ARMS.values()
    )
    with pytest.raises(MechnumError, match="seeds"):
        rescue.rescue_recipes(0)


def test_scores_are_those_of_the_stored_nets_on_what_was_held_out(trained, found):
    recipes, folders, _ = trained
    run = ("rescued", 1)
    model, recipe = mn.load(folders[run]), recipes[run]
    data = recipe.data()
    rows = split(data, recipe.train_fraction, 1).heldout
    logits = model.logits(data.tokens[rows])
    loss = torch.nn.functional.cross_entropy(logits.double(), data.answers[rows])
    own = found["rescue"].sel(arm="rescued", seed=1)
    assert float(own["heldout_loss"]) == pytest.approx(float(loss), abs=1e-4)
    right = (logits.argmax(-1) == data.answers[rows]).double().mean()
    assert float(own["heldout_accuracy"]) == pytest.approx(float(right))
    off = (logits.argmax(-1) - data.answers[rows]).abs()
    numbers = logits.argmax(-1) < 19
    count = found["errors"]["count"].sel(arm="rescued", seed=1)
    assert int(count.sum()) == int(((off > 0) & numbers).sum())
    log = found["curves"].sel(arm="rescued", seed=1)
    assert log["step"].values.tolist() == [3, 6, 9, 12]
    assert np.isfinite(log["heldout_loss"]).all()


def test_spectra_are_of_the_number_vectors_and_rescued_ones_are_given(trained, found):
    _, folders, _ = trained
    for arm in ARMS:
        rows = mn.load(folders[arm, 0]).decoder.weights.W_E[:10].double().numpy()
        power = (np.abs(np.fft.rfft(rows - rows.mean(0), axis=0)) ** 2).sum(1)[1:]
        power[:-1] *= 2
        own = found["embeddings"]["share"].sel(arm=arm, seed=0)
        np.testing.assert_allclose(own, power / power.sum(), atol=1e-5)
    # Frozen: those of the untrained recipe, apart from their rounding in the file.
    start = tiny.RESCUED.net.build(0).get_input_embeddings().weight[:10]
    stored = mn.load(folders["rescued", 0]).decoder.weights.W_E[:10]
    torch.testing.assert_close(stored, start.detach(), atol=1e-3, rtol=1e-3)
    lens = found["lens"]["share"]
    np.testing.assert_allclose(lens.sum("frequency"), 1)
    assert lens["layer"].values.tolist() == [-1, 0]


def test_filters_remove_as_many_directions_at_random(trained, found):
    recipes, folders, _ = trained
    filters = found["filters"]
    assert filters["part"].values.tolist()[:3] == ["nothing", "low", "low"]
    assert filters["rank"].values.tolist() == [0, *[2] * 6, *[5] * 6]
    assert found.attrs["high_periods"] == "5, 2.5, 2"
    # The first condition is the net as it is.
    run = ("scratch", 0)
    model, recipe = mn.load(folders[run]), recipes[run]
    (prompts,) = mn.tasks.addition(range(10)).prompts(model)
    held = split(recipe.data(), recipe.train_fraction, 0).heldout
    pairs = prompts.variables["a"] * 10 + prompts.variables["b"]
    small = torch.isin(pairs, held) & (prompts.variables["answer"] < 10)
    loss = answers(model, [prompts.select(small.nonzero().flatten())]).loss
    own = filters["mean"].sel(arm="scratch", seed=0, measure="loss").isel(condition=0)
    assert float(own) == pytest.approx(float(loss.mean()), abs=1e-6)
    frame = filter_frame(filters.to_dataset())
    assert len(frame) == 6 * 13
    assert set(frame["removed"]) == {"nothing", "low", "low, random", "high", "high, random"}
    row = frame.query("arm == 'rescued' and seed == 1 and modules == 'MLPs' and removed == 'high'")
    at = (filters["modules"] == "mlp") & (filters["part"] == "high")
    at &= filters["projection"] == "filter"
    own = filters["mean"].sel(arm="rescued", seed=1, measure="loss")[at.values]
    assert row["loss"].tolist() == own.values.tolist()


def test_distances_count_every_wrong_number_once(found):
    frame = distance_frame(found["errors"]["count"])
    assert int(frame["count"].sum()) == int(found["errors"]["count"].sum())
    assert set(frame["distance"]) == set(DISTANCES)
    own = found["errors"]["count"].sel(arm="scratch", seed=0)
    ones = int(own.where(abs(own["error"]) == 1, 0).sum())
    row = frame.query("arm == 'scratch' and seed == 0 and distance == '1'")
    assert row["count"].tolist() == [ones]


def test_the_page_survives_the_file(found, tmp_path):
    page, data = save(found, tmp_path)
    html = page.read_text(encoding="utf-8")
    assert "Do Fourier features rescue a net" in html
    titles = [section.title for section in page_of(read_netcdf(data)).sections]
    assert titles[:5] == ["What was found", "Accuracy", "Spectra", "What the nets use", "Errors"]


def test_an_interrupted_experiment_goes_on_and_trains_nothing_twice(trained, tmp_path, monkeypatch):
    recipes, folders, _ = trained
    save_state = loop.save_state
    saved = []

    def interrupted(folder, net, optimizer, step):
        saved.append((folder.parent.name, step))
        if saved[-1] == ("tiny-rescued-seed0", 6):
            raise KeyboardInterrupt
        save_state(folder, net, optimizer, step)

    monkeypatch.setattr(loop, "save_state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rescue.train_rescue(recipes, tmp_path)
    before = [name for name, _ in saved]
    assert "tiny-adder-seed0" not in before
    saved.clear()
    monkeypatch.setattr(
        loop, "save_state", lambda *given: (saved.append(given[0].parent.name), save_state(*given))
    )
    again = rescue.train_rescue(recipes, tmp_path)
    assert "tiny-scratch-seed0" not in saved
    assert saved.count("tiny-rescued-seed0") == 3
    for run, folder in again.items():
        weights = (folder / "model.safetensors").read_bytes()
        assert weights == (folders[run] / "model.safetensors").read_bytes(), run
    saved.clear()
    rescue.train_rescue(recipes, tmp_path)
    assert not saved


def test_folders_of_other_experiments_are_refused_before_training(trained):
    _, _, out = trained
    with pytest.raises(MechnumError, match=r"another recipe \(its steps differs"):
        rescue.train_rescue(rescue.rescue_recipes(2, 13, ARMS), out)
