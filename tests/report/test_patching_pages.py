"""The pages of effects, path effects and circuits: what was measured, how, and how surely."""

from __future__ import annotations

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from mechnum.report import page_of, ranking, save
from mechnum.report.exports import read_netcdf
from mechnum.report.measured import edge_frame, node_frame
from mechnum.report.sections import edges as edge_sections
from mechnum.report.sections.circuit import quality_rows

from .measurements import circuit_results, edge_results, node_results
from .synthetic import trace
from .test_page import Document

SHAPES = {
    "heads": {"layer": 3, "head": 4},
    "mlps": {"layer": 3},
    "neurons": {"layer": 2, "neuron": 64},
    "kv": {"layer": 3, "group": 2},
    "residual": {"position": 4, "layer": 4},
    "q": {"position": 4, "layer": 30, "head": 4},
    "mlp 0, mlp 1": {"node": 2},
    "a list, each": {"position": 4, "node": 3},
}


def printed(renderable, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


def text_of(page) -> str:
    return Document(page.html()).text


def test_each_kind_of_results_has_its_page():
    for results, title in (
        (node_results(), "What each head of adder-gptj does for addition"),
        (edge_results(), "What the parts of adder-gptj pass on to each other for addition"),
        (circuit_results(), "The circuit of adder-gptj for addition"),
        (trace(), "How adder-gptj computes addition"),
    ):
        assert page_of(results).title == title


@pytest.mark.parametrize("nodes", SHAPES)
def test_every_shape_of_effects_has_a_figure_and_a_table(nodes):
    results = node_results(nodes, **SHAPES[nodes])
    page = page_of(results)
    figure, table = page.sections[1].blocks
    assert list(figure.views) == ["effects"]
    drawn = figure.views["effects"]
    assert len([part for part in drawn.data if part.type in ("heatmap", "bar")]) == 3
    frame = node_frame(results)
    assert len(table.frame) == len(frame)
    assert table.frame["total"].abs().is_monotonic_decreasing
    assert set(dict(figure.caption.facts)) == {"Estimand", "n", "Interval", "Null"}
    assert "None" not in figure.caption.text
    assert page.html()


@pytest.mark.parametrize("results", [node_results(), edge_results(), circuit_results()])
def test_every_page_says_how_it_was_made(results):
    text = text_of(page_of(results))
    made = text[text.rindex("How it was made") :]
    for fact in ("adder-gptj", "addition", "logit_diff", "denoise", "other", "20", "Seed",
                 "BOS token", "mechnum: 0.1.0", "mechnum patch adder-gptj"):  # fmt: skip
        assert fact in made, fact
    assert "BOS token: none: the tokenizer has no such token" in text
    assert "The corrupt prompt of the same pair" in text


def test_what_was_found_names_the_largest_and_counts_the_sure():
    results = node_results()
    frame = node_frame(results)
    text = " ".join(text_of(page_of(results)).split())
    best = frame.loc[frame["total"].abs().idxmax()]
    assert f"Largest: {best['node']} (" in text
    assert f"{(frame['total_q'] < 0.05).sum()} of 12 differ from 0 at a false discovery" in text
    assert "in the clean run and" in text


def test_many_nodes_are_cut_in_the_figure_and_all_counted():
    page = page_of(node_results("neurons", layer=2, neuron=64))
    figure, table = page.sections[1].blocks
    assert len(figure.data) == 40
    assert "Drawn are the 40 of 128 nodes with the largest total effect" in figure.caption.text
    assert len(table.frame) == 128
    page = page_of(node_results("q", position=2, layer=30, head=4))
    assert "Drawn are the 48 of 120 nodes" in page.sections[1].blocks[0].caption.text


def test_impossible_edges_are_explained_and_not_in_the_table():
    results = edge_results()
    figure, table = page_of(results).sections[1].blocks
    assert "Hatched edges are impossible" in figure.caption.text
    assert len(table.frame) == 20
    assert table.frame["effect"].notna().all()


def test_edges_of_each_position_have_a_view_on_one_scale():
    results = edge_results(positions=3)
    figure = page_of(results).sections[1].blocks[0]
    assert list(figure.views) == ["−3", "−2", "−1"]
    assert len({view.layout.coloraxis.cmax for view in figure.views.values()}) == 1


def test_large_matrices_are_cut_to_the_largest(monkeypatch):
    monkeypatch.setattr(edge_sections, "_BUDGET", 100)
    results = edge_results(20, 30)
    figure = page_of(results).sections[1].blocks[0]
    shown = figure.data
    assert shown["sender"].nunique() * shown["receiver"].nunique() <= 100
    assert "of 20 senders and" in figure.caption.text
    frame = edge_frame(results)
    best = frame.loc[frame["effect"].abs().idxmax()]
    assert best["sender"] in set(shown["sender"])
    assert best["receiver"] in set(shown["receiver"])


@pytest.mark.slow
def test_a_matrix_of_36_000_edges_is_a_small_page():
    assert len(page_of(edge_results(151, 241)).html()) < 10e6


def test_the_circuit_page_has_picture_numbers_and_curve():
    page = page_of(circuit_results())
    assert [section.title for section in page.sections] == [
        "What was found", "Circuit", "Is the circuit the model?", "Tokens and positions",
        "How it was made",
    ]  # fmt: skip
    found = dict(page.sections[0].blocks[0].points)
    assert found["Faithfulness"].startswith("0.750 [0.700, 0.800]")
    assert found["Circuits of all sizes"].startswith("0.810 in the mean")
    assert "random edges 0.400" in found["Circuits of all sizes"]
    assert page.lead == f"14 nodes and {circuit_results()['circuit'].sizes['edge']} edges."
    rows = dict(quality_rows(circuit_results()))
    assert rows["Faithfulness"] == "0.750 [0.700, 0.800]"
    assert rows["Largest incompleteness of random halves"] == "0.250"
    assert rows["CPR"] == "0.810 (random edges: 0.400)"
    curve = page.sections[2].blocks[1].views["curve"]
    best = next(line for line in curve.data if line.name == "best edges")
    # A share of 0 has no place on a log axis.
    np.testing.assert_allclose(best.x, [0.01, 0.1, 1.0])
    np.testing.assert_allclose(best.y, [0.3, 0.8, 1.0])
    assert len([line for line in curve.data if line.name == "random edges"]) == 3


def test_a_vanishing_denominator_is_a_status_and_no_number():
    results = circuit_results()
    status = "no gap: a difference of 0 is too small to be shared out"
    for name in ("faithfulness", "curve"):
        own = results[name].to_dataset()
        shape = own["status"].shape
        results[name] = xr.DataTree(own.assign(status=(own["status"].dims, np.full(shape, status))))
    rows = dict(quality_rows(results))
    assert rows["Faithfulness"] == rows["CPR"] == status


def test_a_circuit_without_measurements_is_drawn():
    results = circuit_results()
    bare = xr.DataTree.from_dict({"/circuit": results["circuit"].to_dataset()})
    assert [section.title for section in page_of(bare).sections] == [
        "What was found",
        "Circuit",
        "How it was made",
    ]


@pytest.mark.parametrize("results", [node_results(), edge_results(), circuit_results()])
def test_what_was_written_draws_the_same_page(results, tmp_path):
    page, data = save(results, tmp_path)
    assert page.stat().st_size < 10e6
    assert page_of(read_netcdf(data)).html() == page.read_text(encoding="utf-8")
    html = page.read_text(encoding="utf-8")
    assert "np." not in html[html.index("<body") : html.index('id="themes"')]


def test_the_terminal_shows_the_largest_in_order():
    results = node_results()
    text = printed(ranking(results, 4))
    frame = node_frame(results)
    order = frame.loc[frame["total"].abs().sort_values(ascending=False).index, "node"].tolist()
    lines = [line.split("  ")[0].strip() for line in text.splitlines() if " head " in f" {line}"]
    assert [line for line in lines if line.startswith("head")] == order[:4]
    assert "The 4 largest of 12" in text
    assert "in the corrupt run over 20 pairs, in logits" in text
    assert "99 of 100 prompts correctly" in text


def test_the_terminal_leaves_out_impossible_edges():
    text = printed(ranking(edge_results(), 99))
    assert "The 20 largest of 20" in text
    assert "not available" not in text
    assert "position" in printed(ranking(edge_results(positions=2)))
