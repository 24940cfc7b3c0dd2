"""The whole measurement of steering, of a planted net, its page and its summary."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pytest
from rich.console import Console

import mechnum as mn
from mechnum.circuits.instruments.steer import measure_steering
from mechnum.errors import MechnumError
from mechnum.probes.steering.questions import pooled
from mechnum.report import page_of, read_netcdf, save, steering_summary
from mechnum.report.steering_frames import best_frame, steering_frame
from mechnum.tasks import Task
from tests.probes.steering import planted


@dataclass(frozen=True)
class Planted(Task):
    """Every answer in eighteen prompts, a third of them answered wrongly."""

    wrong: bool = True

    @property
    def name(self):
        return "planted"

    def form(self, model):
        return "tokens {a} {b}"

    def _build(self, model):
        draws = [planted.prompts(wrong=False, copies=12)]
        if self.wrong:
            draws.append(planted.prompts(wrong=True, copies=6))
        return pooled(draws)

    def _spelling(self, model):
        return lambda token: token


@pytest.fixture(scope="module")
def found():
    return measure_steering(planted.net(), Planted(), "fourier", alphas=(0.5, 1.0), null=9, seed=1)


def test_every_part_is_of_the_same_run(found):
    swept, best = found["steering"].to_dataset(), found["best"].to_dataset()
    assert found.attrs["accuracy"] == float(swept["right_before"].mean())
    assert found.attrs["n_train"] + found.attrs["n_prompts"] == 6 * 18
    assert set(found["vectors"]["vector"].values) <= set(swept["vector"].values)
    means = found["vectors"].to_dataset().sel(vector="class means")
    np.testing.assert_allclose(means["cosine"], 1)
    read = found["vectors"]["read"]
    assert (read.sel(vector="probe, any state") == 1).all()
    assert ((read >= 0) & (read <= 1)).all()
    # Two thirds of a number's training states are its own.
    assert float(best["repaired"].sel(vector="class means")) == 1
    assert float(best["broken"].sel(vector="class means")) == 0
    beside = found["published"].to_dataset().set_index(figure="quantity")
    (repaired,) = beside["measured"].sel(figure=["wrong answers repaired, several tasks"]).values
    assert repaired == float(best["repaired"].sel(vector="probe"))


def test_frames_hold_every_cell_and_the_null(found):
    frame = steering_frame(found)
    swept = found["steering"].to_dataset()
    assert len(frame) == (swept.sizes["vector"] + 1) * 2 * 2
    row = frame[(frame["vector"] == "helix") & (frame["layer"] == 1) & (frame["alpha"] == 1)]
    if len(row):
        at = swept.sel(vector="helix", layer=1, alpha=1)
        assert float(row["repaired"].iloc[0]) == float(at["repaired"])
    random = frame[frame["vector"] == "random directions"].set_index(["layer", "alpha"])
    expected = swept["random_broken"].mean("draw").to_series()
    np.testing.assert_allclose(random["broken"], expected)
    best = best_frame(found)
    np.testing.assert_array_equal(best["p"], found["best"]["p"])
    assert (best["random_low"] <= best["random_high"]).all()


def test_page_and_summary_say_what_was_measured(found, tmp_path):
    _, data = save(found, tmp_path)
    page = page_of(read_netcdf(data))
    assert [section.title for section in page.sections] == [
        "What was found",
        "The best layer and strength",
        "By layer and strength",
        "Probes and vectors",
        "Published figures",
        "Tokens and positions",
        "How it was made",
    ]
    blocks = [block for section in page.sections for block in section.blocks]
    for block in blocks:
        if block.kind == "figure":
            caption = block.caption
            assert all((caption.estimand, caption.n, caption.null)), block.title
    html = page.html()
    assert "no way to repair a model" in html
    assert "are no reproduction of the paper&#39;s" in html
    printed = io.StringIO()
    Console(file=printed, width=140).print(steering_summary(found))
    for name in found["best"]["vector"].values:
        assert str(name) in printed.getvalue()


def test_what_cannot_be_measured_is_refused(monkeypatch):
    model = planted.net()
    with monkeypatch.context() as patched:
        # Before anything is trained or swept, which takes longest.
        patched.delattr("mechnum.circuits.instruments.steer.fit_vectors")
        with pytest.raises(
            MechnumError, match="all 36 prompts correctly, so that there is nothing"
        ):
            measure_steering(model, Planted(wrong=False), "fourier", null=1)
        with pytest.raises(MechnumError, match=r"alphas \(2.0,\) are no strengths"):
            measure_steering(model, Planted(), "fourier", alphas=(2.0,), null=1)
    with pytest.raises(MechnumError, match="has no solved examples to draw anew"):
        measure_steering(model, Planted(), "fourier", draws=2)


@pytest.mark.slow
def test_class_means_repair_an_adder_more_than_random_directions():
    model = mn.load("adder-scratch")
    task = mn.tasks.addition(range(100))
    found = measure_steering(model, task, "fourier", alphas=(0.3,), random=1, null=19)
    means = found["best"].to_dataset().sel(vector="class means")
    assert float(means["repaired"]) > 0.4
    assert float(means["p"]) == 0.05
    assert float(means["broken"]) < 0.05
