"""A grokked net in one measurement: what is in it, what its page says, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import mechnum as mn
from mechnum.circuits.instruments.clock_pizza import measure_clock_pizza
from mechnum.circuits.instruments.grokking import best_explained, measure_grokking
from mechnum.errors import MechnumError
from mechnum.report import page_of, read_netcdf, save
from mechnum.report.sections.clock_pizza import accompanied, circle_frame
from mechnum.report.sections.grokking import phase_spans, phase_words
from mechnum.training import history_of, recipes, train
from tests import published


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two steps of clock-59 with a checkpoint after each, in their own folder."""
    recipe = replace(recipes.CLOCK_59, steps=2, checkpoint_every=1, snapshot_every=1)
    folder = tmp_path_factory.mktemp("run")
    train(recipe, folder)
    return folder


@pytest.fixture(scope="module")
def clock_59():
    return mn.load("clock-59")


@pytest.fixture(scope="module")
def grokked(clock_59, run):
    return measure_grokking(clock_59, history=history_of("clock-59", run), top=7)


def test_its_parts_are_those_of_the_single_measurements(grokked, clock_59, run):
    trained_on = history_of("clock-59").trained_on
    alone = mn.grokking.progress_measures(clock_59, train=trained_on)
    for name in ("loss", "restricted_loss", "excluded_loss", "key_share", "gini_W_E"):
        np.testing.assert_allclose(grokked["progress"][name], alone[name])
    over = grokked["over"].to_dataset()
    assert over["step"].values.tolist() == [0, 1, 2]
    third = mn.grokking.progress_measures(
        mn.load(run / "snapshots" / "000001"), keys=alone["key"].values, train=trained_on
    )
    np.testing.assert_allclose(over["excluded_loss"].sel(step=1), third["excluded_loss"])
    assert set(json.loads(over.attrs["phases"])) == {"memorised", "formed", "cleaned"}
    assert grokked["training"]["step"].values.tolist() == [1, 2]
    neurons = grokked["maps"]["neuron"].values
    maps = mn.grokking.neuron_maps(clock_59, name="mlp_hidden")
    np.testing.assert_allclose(
        grokked["maps"]["activation"].sel(neuron=neurons[2]), maps[..., neurons[2]], atol=1e-5
    )


def test_mapped_neurons_are_the_best_of_each_key_in_turn(grokked):
    progress = grokked["progress"].to_dataset()
    chosen = best_explained(progress, 7)
    keys = progress["key"].values
    frequency, explained = progress["neuron_frequency"].values, progress["neuron_explained"].values
    assert frequency[chosen].tolist() == [*keys, *keys, keys[0]]
    for place, key in enumerate(keys):
        own = explained[frequency == key]
        assert explained[chosen[place]] == own.max()
    assert len(best_explained(progress, 10_000)) == np.isin(frequency, keys).sum()


@pytest.mark.slow
def test_the_page_has_every_part_and_survives_the_file(grokked, tmp_path):
    page, data = save(grokked, tmp_path)
    html = page.read_text(encoding="utf-8")
    titles = {section.title for section in page_of(read_netcdf(data)).sections}
    assert titles == {
        "What was found", "Over training", "Frequencies and circles", "Logits", "Neurons",
        "Progress measures", "Tokens and positions", "How it was made",
    }  # fmt: skip
    keys = grokked["progress"]["key"].values
    assert f"{keys[0]}, {keys[1]} and {keys[2]}: the frequencies of 5" in html
    for section in page_of(grokked).sections:
        for block in section.blocks:
            if block.kind == "figure":
                assert block.caption.estimand, block.title


def test_phases_are_drawn_as_far_as_they_go(grokked):
    over = grokked["over"].to_dataset()

    def spans(**phases):
        return phase_spans(over.assign_attrs(phases=json.dumps(phases)))

    assert spans(memorised=None, formed=None, cleaned=None) == []
    # The steps end at 2.
    first, second, third = ("memorisation", 0, 1), ("circuit formation", 0, 1), ("clean-up", 1, 2)
    assert spans(memorised=0, formed=0, cleaned=2) == []
    assert spans(memorised=0, formed=1, cleaned=2) == [second, third]
    assert spans(memorised=0, formed=1, cleaned=None) == [second, third]
    assert spans(memorised=1, formed=1, cleaned=2) == [first, third]
    assert spans(memorised=1, formed=None, cleaned=None) == [first, ("circuit formation", 1, 2)]


def test_phases_that_are_not_there_are_named(grokked):
    over = grokked["over"].to_dataset()

    def said(**phases):
        return phase_words(over.assign_attrs(phases=json.dumps(phases)))

    assert said(memorised=None, formed=None, cleaned=None).startswith("No phases are found")
    assert said(memorised=0, formed=0, cleaned=2) == (
        "No phases: the held-out loss falls from the first checkpoint on, and has fallen at step 2."
    )
    assert said(memorised=0, formed=1, cleaned=2).endswith(
        "There is no memorisation before it between these checkpoints."
    )
    assert "There is no" not in said(memorised=1, formed=None, cleaned=None)
    without = over.drop_attrs()
    assert phase_words(without) == "No phases: the curves allow none."
    assert "not known" in phase_words(without.sel(part=["all"]))


@pytest.mark.slow
def test_published_net_beside_its_paper(tmp_path):
    model = mn.load(published.grokking_net(tmp_path))
    found = measure_grokking(model)
    table = found["published"].to_dataset().to_dataframe().set_index("paper_model")
    released = table.loc["the released net"]
    assert released["within"].tolist() == ["yes"] * 3
    assert released["measured"].tolist() == pytest.approx([1, 3.5e-7, 5], rel=0.02)
    # The main run is another net of its shapes, and held against nothing.
    main = table.loc["the main run"].set_index("quantity")
    assert set(main["within"]) == {""}
    assert set(main["kind"]) == {"same shapes, other training"}
    assert main.loc["rank of W_L = W_U · W_out", "measured"] == 10
    assert "over" not in found.children
    assert "training" not in found.children
    page_of(found).html()


@pytest.mark.slow
def test_clock_or_pizza_with_its_figures_and_the_published_ones_beside(tmp_path):
    model = mn.load(published.pizza_net(tmp_path, "clock_pizza_p99zdpze5l"))
    found = measure_clock_pizza(model, said={"command": "mechnum clock-pizza"})
    assert found.attrs["verdict"] == "pizza-like"
    table = found["published"].to_dataset().to_dataframe().set_index("paper_model")
    assert table.loc["Model A", "within"].tolist() == ["yes"] * 12
    assert set(table.index) == {"Model A", "circular runs at rates of 0.0 to 0.1"}
    verdict = found["verdict"].to_dataset()
    # Zhong et al. 2023: circles 17, 3 and 15 have companions at twice the frequency.
    assert accompanied(verdict) == {17: 25, 3: 6, 15: 29}
    frame = circle_frame(verdict, "fourier")
    assert frame["circle"].tolist()[:3] == [17, 3, 15]
    logits = mn.grokking.net_logits(mn.grokking.net_from_model(model))
    assert float(found["irrelevance"]["logit"].sel(sum=8, distance=2)) == logits[5, 3, 8]
    page, data = save(found, tmp_path / "out")
    html = page.read_text(encoding="utf-8")
    for said in ("pizza-like", "17 by 25", "Moisescu-Pareja", "symmetricity"):
        assert said in html
    assert "Published figures" in {s.title for s in page_of(read_netcdf(data)).sections}


def test_only_nets_of_the_configuration_are_compared(clock_59):
    found = measure_clock_pizza(clock_59, mn.tasks.modular_addition(59), n=10, seed=1, n_circles=2)
    # It has the configuration of Model B; the published symmetricity is of other triples.
    table = found["published"].to_dataset().to_dataframe().set_index("paper_model")
    own = table.loc["Model B"].set_index("quantity")
    assert own.loc["gradient symmetricity", "needs"] == "triples published"
    right = float(found["verdict/irrelevance"].values[0])
    assert own.loc["distance irrelevance, right logit", "measured"] == right
    assert set(own["kind"]) == {"same shapes, other training"}
    assert "Model A" not in table.index
    assert accompanied(found["verdict"].to_dataset()) == {}


def test_runs_of_other_tasks_and_checkpoints_of_other_shapes_are_refused(clock_59, tmp_path):
    one_step = {"steps": 1, "checkpoint_every": 1, "snapshot_every": 1}
    train(replace(recipes.CLOCK_113, **one_step), tmp_path / "other")
    with pytest.raises(MechnumError, match="the run trained on modular_addition:113, and clock-59"):
        measure_grokking(clock_59, history=history_of("clock-59", tmp_path / "other"))
    checkpoints = history_of("clock-59", tmp_path / "other" / "snapshots")
    with pytest.raises(MechnumError, match=r"000000 has d_vocab = 114, and clock-59 59: give"):
        measure_grokking(clock_59, history=replace(checkpoints, task=None))


@pytest.mark.parametrize("measure", [measure_grokking, measure_clock_pizza])
def test_weights_that_are_not_numbers_are_refused(measure, run, tmp_path):
    source = run / "snapshots" / "000002"
    (tmp_path / "net.toml").write_text((source / "net.toml").read_text())
    tensors = load_file(source / "model.safetensors")
    name = next(name for name in tensors if name.endswith("W_out"))
    tensors[name] = torch.full_like(tensors[name], float("nan"))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(MechnumError) as refusal:
        measure(mn.load(tmp_path))
    assert "\n" not in str(refusal.value)
