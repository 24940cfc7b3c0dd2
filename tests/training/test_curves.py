"""A run's scores as results, and their page: what the log says, also half way and after a kill."""

from __future__ import annotations

import json

import pytest

from mechnum.errors import MechnumError
from mechnum.report import page_of, read_netcdf, save
from mechnum.training import read_log, train, training_curves
from mechnum.training.claim import claim
from tests.report.test_page import Document
from tests.training import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(tiny.CLOCK, folder)
    return folder


def test_curves_are_the_log(run):
    results = training_curves(run)
    dataset, scores = results["training"].to_dataset(), read_log(run)
    assert dataset["step"].values.tolist() == [3, 6, 9, 10]
    assert set(dataset) == {"seconds"} | {
        f"{part}_{measure}" for part in ("train", "heldout") for measure in ("loss", "accuracy")
    }
    for name in dataset:
        assert dataset[name].values.tolist() == [getattr(score, str(name)) for score in scores]


def test_attributes_are_the_recipe(run):
    attrs = training_curves(run).attrs
    assert attrs["model"] == "tiny-clock"
    assert attrs["task"] == "modular_addition:5"
    assert attrs["learning_rate"] == tiny.CLOCK.learning_rate
    assert json.loads(attrs["betas"]) == [0.9, 0.98]
    assert "torch" in json.loads(attrs["versions"])
    # The whole training set, which JSON writes as null and netCDF cannot write at all.
    assert "batch_size" not in attrs


def test_page_says_the_last_scores_and_shows_both_parts(run, tmp_path):
    results = training_curves(run)
    page, data = save(results, tmp_path)
    last = tiny.prompt_scores(run)[-1]
    text = Document(page.read_text(encoding="utf-8")).text
    assert f"{100 * last.heldout_accuracy:.1f}".removesuffix(".0") in text
    assert "Trained on, 99 % right: " in text
    (figure,) = (
        block for section in page_of(results).sections for block in section.blocks
        if block.kind == "figure"
    )  # fmt: skip
    held_out = [score.heldout_loss for score in read_log(run)]
    known = [score.train_accuracy for score in tiny.prompt_scores(run)]
    lines = {(line.name, line.yaxis): line.y for line in figure.views["curves"].data}
    assert lines["held out", "y"] == pytest.approx(held_out, rel=1e-5)
    assert lines["trained on", "y2"] == pytest.approx(known, rel=1e-5)
    again = read_netcdf(data)
    assert again["training"].to_dataset().identical(results["training"].to_dataset())


def test_a_loss_of_zero_leaves_a_gap(run):
    results = training_curves(run)
    results["training"]["train_loss"][-1] = 0.0
    (figure,) = (
        block for section in page_of(results).sections for block in section.blocks
        if block.kind == "figure"
    )  # fmt: skip
    assert figure.views["curves"].data[0].y[-1] is None


def test_runs_without_a_score_are_refused(tmp_path):
    claim(tmp_path / "run", tiny.CLOCK)
    with pytest.raises(MechnumError, match=r"log\.jsonl has no score yet: train on"):
        training_curves(tmp_path / "run")


def test_folders_that_are_no_run_are_refused(tmp_path):
    with pytest.raises(MechnumError, match="holds no run"):
        training_curves(tmp_path)
