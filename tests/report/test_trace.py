from __future__ import annotations

import io
import json

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from mechnum.report import summary_frame, trace_page, trace_summary
from mechnum.report.exports import read_netcdf
from mechnum.report.reading import example_roles, example_tokens
from mechnum.report.saving import save
from mechnum.report.sections import attention
from mechnum.report.trace import build_page

from .test_page import Document

PARTS = ["prompts", "errors", "effects", "helix", "attention"]


def without(results: xr.DataTree, *paths: str) -> xr.DataTree:
    kept = {
        node.path: node.to_dataset()
        for node in results.subtree
        if not any(node.path.strip("/").startswith(path) for path in paths)
    }
    return xr.DataTree.from_dict(kept)


def sections(results: xr.DataTree) -> list[str]:
    return [section.title for section in build_page(results).sections]


def test_a_full_trace_has_every_section(results):
    assert sections(results) == [
        "What was found",
        "Tokens and positions",
        "Accuracy and errors",
        "Heads",
        "Attention and MLPs by layer",
        "Helix",
        "Attention",
        "How it was made",
    ]


@pytest.mark.parametrize("part", [*PARTS, "effects/heads", "effects/mlps", "helix/planes"])
def test_missing_parts_are_left_out(results, part):
    html = trace_page(without(results, part))
    assert "How it was made" in html


def test_an_empty_trace_still_says_so_much():
    assert sections(xr.DataTree()) == ["How it was made"]
    assert trace_page(xr.DataTree())


def test_what_is_left_out_is_said_with_its_reason_on_the_page_and_the_terminal(results):
    few = without(results, "helix")
    few.attrs["left_out"] = json.dumps({"helix at a": "too few numbers"})
    assert "Left out: helix at a" in trace_page(few)
    console = Console(file=io.StringIO(), width=100)
    console.print(trace_summary(few))
    assert "Left out: helix at a: too few numbers." in console.file.getvalue()


def test_the_summary_names_the_largest_effects(results):
    means = results["effects/heads/total"].mean("pair").values
    layer, head = np.unravel_index(np.abs(means).argmax(), means.shape)
    html = trace_page(results)
    text = html[html.index("What was found</h2>") :]
    assert f"largest total effects {layer}.{head} (+{float(means[layer, head]):.2f} [" in text
    assert "9,942 of 10,000 prompts correctly (99.4\N{NO-BREAK SPACE}%)" in html


def test_captions_say_estimand_n_interval_and_null(results):
    for section in build_page(results).sections:
        if section.title in ("Heads", "Attention and MLPs by layer"):
            facts = dict(section.blocks[0].caption.facts)
            assert set(facts) == {"Estimand", "n", "Interval", "Null"}
            assert facts["n"] == "100 pairs"


def test_no_numpy_in_the_page(results):
    results.attrs["loss"] = np.float64(0.25)
    results.attrs["shape"] = np.array([1, 2])
    html = trace_page(results)
    assert "np." not in html[html.index("<body") : html.index('id="themes"')]
    assert "float64(" not in html[: html.index('id="themes"')]
    document = Document(html)
    assert len(document.data) > 10


def test_a_net_without_tokenizer_and_with_one_layer(results):
    """Modular addition: ids as tokens, one layer, no linear coordinate, no errors."""
    results = without(results, "errors", "helix")
    results.attrs |= {"task": "modular_addition:113", "accuracy": 1.0, "n_prompts": 12769}
    prompts = results["prompts"].to_dataset().drop_vars("token")
    prompts["correct"] = xr.ones_like(prompts["correct"], dtype=bool)
    results["prompts"] = xr.DataTree(prompts)
    rng = np.random.default_rng(0)
    for name in ("heads", "attn", "mlps"):
        effects = results[f"effects/{name}"].to_dataset().isel(layer=[0])
        results[f"effects/{name}"] = xr.DataTree(effects)
    results["helix/end"] = xr.DataTree(
        xr.Dataset(
            {"score": (("layer", "method", "pair"), rng.normal(2, 1, (1, 2, 50)))},
            coords={"method": ["full", "circle"]},
        )
    )
    results["helix/planes"] = xr.DataTree(
        xr.Dataset(
            {"coordinates": (("number", "period", "axis"), rng.normal(size=(113, 2, 2)))},
            coords={"number": np.arange(113), "period": [113 / 14, 113 / 35]},
        )
    )
    html = trace_page(results)
    assert example_tokens(results) == ["37", "200", "48", "201"]
    assert "There are no errors to show." in html
    assert "T = 8.071" in html


def test_tokens_and_roles(results):
    assert example_tokens(results) == ["37", "+", "48", "="]
    assert example_roles(results) == {0: "a", 1: "op", 2: "b", 3: "end"}
    results["prompts"].attrs["positions"] = json.dumps({"b": 1, "end": 1})
    assert example_roles(results) == {1: "b, end"}


def test_too_much_attention_is_thinned_to_the_most_important_heads(results, monkeypatch):
    monkeypatch.setattr(attention, "BUDGET", 2 * 16)
    page = build_page(results)
    view = next(section for section in page.sections if section.title == "Attention").blocks[0]
    means = np.abs(results["effects/heads/total"].mean("pair").values)
    best = np.unravel_index(means.argmax(), means.shape)
    assert sum(len(heads) for heads in view.patterns.values()) == 2
    assert best[1] in view.patterns[int(best[0])]
    assert view.cut == "The 2 heads with the largest total effect are here, of 16."


@pytest.mark.slow
def test_files_are_written_and_small(results, tmp_path):
    report, data = save(results, tmp_path / "out")
    assert report.stat().st_size < 10e6
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html",
        "results.nc",
    ]
    # What was written draws the same page.
    assert trace_page(read_netcdf(data)) == report.read_text(encoding="utf-8")


def test_summary_on_the_terminal(results):
    out = io.StringIO()
    Console(file=out, width=100).print(trace_summary(results))
    text = out.getvalue()
    assert "adder-gptj · addition" in text
    assert "9,942 of 10,000" in text
    for row in summary_frame(results).to_dict("records"):
        assert row["node"] in text
    assert "np." not in text
    assert max(map(len, text.splitlines())) <= 100


def test_summary_frame_is_ranked(results):
    frame = summary_frame(results)
    assert frame["kind"].tolist() == ["Heads"] * 5 + ["Attention layers"] * 3 + ["MLPs"] * 3
    for _, rows in frame.groupby("kind"):
        assert rows["total"].abs().is_monotonic_decreasing


def test_summary_of_nothing():
    Console(file=io.StringIO()).print(trace_summary(xr.DataTree()))
    assert summary_frame(xr.DataTree()).empty
