"""The pages of the Fourier lens and of filters: their parts, and models that err or do not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import mechnum as mn
from mechnum.fourier import filter_results, high_pass, lens_results, single_pass
from mechnum.report import filter_summary, lens_summary, page_of, read_netcdf, save
from mechnum.report.wave_frames import filter_frame, lens_frame, outlier_frame
from mechnum.tasks import addition, modular_addition
from tests.helix.nets import P, tiny_model

from .test_page import Document

BANDS = [high_pass(9), single_pass(4)]


@pytest.fixture(scope="module")
def erring():
    """A net of random weights: nothing stands out, and nearly all is wrong."""
    model, task = tiny_model(), modular_addition(P)
    return {
        "lens": lens_results(model, task, 60, permutations=19),
        "filters": filter_results(model, task, BANDS, n_prompts=60),
    }


@pytest.fixture(scope="module")
def adding():
    """A net that adds, with its waves."""
    model, task = mn.load("adder-gptj"), addition(range(20))
    return {
        "lens": lens_results(model, task, 40, permutations=19),
        "filters": filter_results(model, task, BANDS, ["attn"], n_prompts=40),
    }


def printed(renderable) -> str:
    out = io.StringIO()
    Console(file=out, width=250).print(renderable)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erring", "adding"])
@pytest.mark.parametrize("kind", ["lens", "filters"])
def test_every_figure_says_what_it_shows(request, name, kind):
    page = page_of(request.getfixturevalue(name)[kind])
    for section in page.sections:
        for block in section.blocks:
            if hasattr(block, "caption") and block.kind == "figure":
                assert block.caption.text
                assert block.caption.n
                assert block.alt
                assert len(block.data)
    text = Document(page.html()).text
    assert "nan" not in text.lower().split()
    assert "How it was made" in text


@pytest.mark.slow
def test_what_was_found_is_said(erring, adding):
    assert "No frequency stands out" in Document(page_of(erring["lens"]).html()).text
    text = Document(page_of(adding["lens"]).html()).text
    lens = adding["lens"]["lens"].to_dataset()
    best = outlier_frame(lens_frame(lens))
    strongest = best[best["stage"] != "resid"].iloc[0]
    assert f"(k = {int(strongest['frequency'])}, " in text
    assert "The model makes no errors on these prompts" in text
    assert "Kinds of answers" in Document(page_of(erring["lens"]).html()).text


def test_maps_show_every_value_of_each_stage(adding):
    lens = adding["lens"]["lens"].to_dataset()
    (figure,) = [
        block
        for section in page_of(adding["lens"]).sections
        if section.title == "What each state would answer"
        for block in section.blocks
        if block.kind == "figure"
    ]
    drawn = figure.views["share of power"]
    heat = [trace for trace in drawn.data if trace.type == "heatmap"]
    for trace, stage, layers in zip(heat, ("resid", "attn", "mlp"), (5, 4, 4)):
        expected = lens["share"].sel(stage=stage).dropna("layer").values
        assert expected.shape[0] == layers
        np.testing.assert_allclose(np.array(trace.z, dtype=float), expected, rtol=1e-4)
    marks = [len(trace.x) for trace in drawn.data if trace.type == "scatter"]
    assert sum(marks) == int(lens["outlier"].sum())


def test_the_ablation_table_has_the_control_beside_each_row(adding):
    out = printed(filter_summary(adding["filters"]))
    frame = filter_frame(adding["filters"]["table"].to_dataset())
    rows = [line for line in out.splitlines() if " of 128" in line]
    assert len(rows) == 2
    assert len(frame) == 1 + 2 * 2
    assert "addition" in out


def test_a_net_without_outliers_prints_none(erring):
    assert "The 0 largest of 0 frequencies" in printed(lens_summary(erring["lens"]))


@pytest.mark.parametrize("kind", ["lens", "filters"])
def test_files_give_the_same_page(tmp_path, erring, kind):
    page, data = save(erring[kind], tmp_path)
    assert page_of(read_netcdf(data)).html() == page.read_text(encoding="utf-8")
