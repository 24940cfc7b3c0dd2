"""A clock chooses on one half of the pairs and measures on the other, by the single instruments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechnum as mn
from mechnum.circuits.trigonometry import readings
from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.patching.circuit.results import circuit_of, circuit_results
from mechnum.patching.nodes import all_nodes
from mechnum.report import figures, page_of, read_netcdf, save
from mechnum.report.clock_frames import column_of, curve_frames, heads_frame, mlps_frame
from tests.helix.nets import P, tiny_model

SEED = 2


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def task():
    return mn.tasks.parse(f"modular_addition:{P}")


@pytest.fixture(scope="module")
def clock(model, task):
    return mn.trace_clock(
        model, task, 24, (P,), n_heads=5, n_mlps=2, n_edges=9, correct_only=False, seed=SEED,
        command="mechnum clock tiny",
    )  # fmt: skip


@pytest.fixture(scope="module")
def halves(model, task):
    return task.pairs(model, 24, seed=SEED, correct_only=False).split(seed=SEED)


def test_nodes_are_the_best_of_the_first_half(model, clock, halves):
    first, _ = halves
    for kind, group in (("head", "heads"), ("mlp", "mlps")):
        total = mn.effects(model, first, all_nodes(kind, model.spec))["total"].mean("pair")
        best = total["node"].values[np.argsort(-total.values)]
        curve = clock[f"clock/curves/{group}"]
        assert curve["added"].values.tolist() == best.tolist()
        if kind == "head":
            heads = clock["clock/heads"]
            assert heads["node"].values.tolist() == best[:5].tolist()
            np.testing.assert_allclose(heads["chosen_by"], np.sort(total)[::-1][:5], atol=1e-6)
        else:
            there = {str(node) for node in circuit_of(clock["circuit"].to_dataset()).nodes}
            assert {name for name in there if name.startswith("mlp")} <= set(best[:2])


def test_effects_are_those_of_the_second_half(model, clock, halves):
    _, second = halves
    heads = clock["clock/heads"].to_dataset()
    expected = mn.effects(model, second, heads["node"].values.tolist())
    np.testing.assert_allclose(heads["total"], expected["total"], atol=1e-4)
    np.testing.assert_allclose(heads["direct"], expected["direct"], atol=1e-4)
    edges = clock["effects/effect"]
    for edge in edges["edge"].values:
        sender, receiver = str(edge).split(" -> ")
        own = mn.path_effects(model, second, [sender], [receiver])["effect"][:, 0, 0]
        np.testing.assert_allclose(edges.sel(edge=edge), own, atol=1e-4)
    assert edges.sizes == {"pair": 12, "edge": 9}
    assert (clock.attrs["n_pairs"], clock.attrs["n_pairs_found_on"]) == (12, 12)
    assert (clock.attrs["command"], clock.attrs["linear"]) == ("mechnum clock tiny", "False")


def test_the_circuit_comes_back(model, clock):
    described = clock["circuit"].to_dataset()
    circuit = circuit_of(described)
    assert len(circuit.intervals) == len(circuit.scores) == len(circuit) == 9
    again = circuit_results(circuit, model.spec)
    for name in described.variables:
        np.testing.assert_array_equal(again[name], described[name])


def test_figures_of_addition_are_not_compared_with_another_task(clock):
    assert "published" not in clock.children
    assert "Published figures" not in [section.title for section in page_of(clock).sections]


@pytest.mark.slow
def test_the_page_is_whole_before_and_after_the_file(clock, tmp_path):
    _, data = save(clock, tmp_path)
    again = page_of(read_netcdf(data))
    assert [section.title for section in again.sections] == [
        section.title for section in page_of(clock).sections
    ]
    heads, mlps = heads_frame(clock), mlps_frame(clock)
    bars = figures.class_bars(heads)
    shares = sum(np.nan_to_num(np.array(trace.x, dtype=float)) for trace in bars.data[2:])
    np.testing.assert_allclose(shares, 1, atol=1e-5)
    assert mlps is not None
    assert len(figures.stage_lines(mlps).data) == 3
    assert len(curve_frames(clock)) == 2


def test_nodes_stand_in_the_column_of_their_class():
    classes = {"head 0.1": "a,b", "head 1.0": "a+b", "head 1.1": "mixed"}
    stages = {"mlp 0": "compute", "mlp 1": "unclear", "mlp 2": "read out"}
    names = ["embed", *classes, *stages, "kv 1.g0", "head 2.2", "logits"]
    found = [column_of(name, classes, stages) for name in names]
    assert found == ["embed", "move", "read out", "move", "compute", "compute", "read out", "move",
                     "move", "logits"]  # fmt: skip
    nodes = pd.DataFrame({"name": ["embed", "head 0.1", "head 1.0", "logits"],
                          "kind": ["embed", "head", "head", "logits"],
                          "layer": [np.nan, 0, 1, np.nan],
                          "index": [np.nan, 1, 0, np.nan]})  # fmt: skip
    edges = pd.DataFrame({"sender": ["embed", "head 1.0"], "receiver": ["v 0.g1", "logits"],
                          "reader": ["head 0.1", "logits"], "effect": [1.0, -2.0],
                          "low": [0.5, -3], "high": [2.0, -1], "link": [False, False]})  # fmt: skip
    heads = pd.DataFrame({"node": ["head 0.1", "head 1.0"], "class": ["a,b", "a+b"],
                          "sure": [0.5, 1.0]})  # fmt: skip
    picture = figures.clock_picture(nodes, edges, heads, None)
    places = {trace.text[0]: trace.x[0] for trace in picture.data if trace.mode == "markers+text"}
    assert places == {"embed": 0, "0.1": 1, "1.0": 3, "logits": 4}
    assert {note.text for note in picture.layout.annotations} == {"a,b 50 %", "a+b 100 %"}
    hover = next(trace for trace in picture.data if trace.name == "edges").hovertext
    assert any("[0.50, 2.00]" in text or "[0.5, 2.0]" in text for text in hover)


@pytest.mark.slow
def test_a_net_without_mlps(model, task):
    decoder = model.decoder
    blocks = tuple(replace(block, mlp=None, ln2=None) for block in decoder.weights.blocks)
    bare = Decoder(
        replace(model.spec, d_mlp=0), replace(decoder.weights, blocks=blocks), decoder.rotary
    )
    found = mn.trace_clock(
        replace(model, decoder=bare, spec=bare.spec), task, 12, (P,), correct_only=False
    )
    assert "mlps" not in found["clock"].children
    assert np.isnan(readings.needed(found, "mlps", "0.7"))
    assert np.isnan(readings.largest_mlp(found))
    assert readings.needed(found, "heads", "0.5") >= 1
    assert "MLPs" not in [section.title for section in page_of(found).sections]
    assert not any("mlp" in str(edge) for edge in circuit_of(found["circuit"].to_dataset()).edges)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_pairs": 3}, "3 pairs are too few"),
        ({"n_heads": 0}, "n_heads is 0"),
        ({"n_edges": 0}, "n_edges is 0"),
        ({"n_mixed": -1}, "give 0 or more"),
        ({"folds": 1}, "1 fold leaves nothing to fit"),
        ({"periods": (0,)}, "not a finite number above 0"),
    ],
)
def test_refusals(model, task, options, message):
    with pytest.raises(MechnumError, match=message) as refused:
        mn.trace_clock(
            model, task, **{"n_pairs": 12, "correct_only": False, "periods": (P,)} | options
        )
    assert "\n" not in str(refused.value)
