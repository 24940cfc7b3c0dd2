"""Readings give the figure that the paper reports, from results whose values are planted."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from mechnum.circuits.belief_states import readings as beliefs
from mechnum.circuits.clock_pizza import readings as pizza
from mechnum.circuits.fourier_features import readings as fourier
from mechnum.circuits.grokking import readings as grokking
from mechnum.circuits.heuristics import readings as heuristics
from mechnum.circuits.running.catalogue import find_circuit
from mechnum.circuits.trigonometry import readings as trigonometry
from mechnum.circuits.universal_numbers import readings as universal

PAIRS = np.array([-1.0, 1.0])


def tree(**groups):
    return xr.DataTree.from_dict({f"/{name.replace('__', '/')}": of for name, of in groups.items()})


def test_trigonometry_scores_by_method_and_layer():
    methods = ["full", "pca", "helix"]
    # The embedding's are the largest, and count for nothing.
    means = np.array([[99.0, 99, 99], [10.0, 8, 9], [4.0, 3, 9.5]])
    scores = xr.Dataset(
        {"score": (("layer", "method", "pair"), means[:, :, None] + PAIRS)},
        {"layer": [-1, 0, 1], "method": methods},
    )
    found = tree(helix__a=scores, variables=scores)
    for read in (
        lambda method: trigonometry.largest_score(found, "a", method),
        lambda method: trigonometry.largest_of_variables(found, method),
    ):
        assert [read(method) for method in methods] == [10, 8, 9.5]
        assert np.isnan(read("circle"))
    # Where the step looked at another position there is no such score.
    assert np.isnan(trigonometry.largest_score(found, "b", "full"))


def test_trigonometry_is_set_beside_the_same_quantity_alone():
    # The paper's scores are raw logits of pairs of its task, with helices fitted in sample.
    asked = {
        "largest_score": {"metric", "task", "folds"},
        "largest_of_variables": {"metric", "task", "folds"},
        "needed": {"metric", "task"},
        "share_of_first": {"metric", "task"},
        "heads_of_class": {"metric", "task"},
        "validated": {"metric", "task"},
        "summed": {"metric", "task"},
        "of_mlp": {"metric", "task"},
        "kept_neurons": {"metric", "task"},
        "fitted_neurons": {"metric", "task"},
        "direct_and_sum": {"metric", "task"},
    }
    figures = find_circuit("trigonometry").published.figures
    for figure in figures:
        assert asked.get(figure.reading, set()) <= set(figure.requires), figure.name
    assert asked.keys() <= {figure.reading for figure in figures}


def test_trigonometry_of_a_clock():
    k_for = json.dumps({"0.5": 8, "0.7": None})
    curve = xr.Dataset({"share": ("k", [0.3, 0.6])}, {"k": [1, 2]}, {"k_for": k_for})
    nodes = ["head 24.10", "head 1.0", "head 2.0"]
    heads = xr.Dataset(
        {
            "class": ("node", ["a+b", "a,b", "a,b"]),
            "total": (("pair", "node"), 3 + PAIRS[:, None] * np.ones(3)),
            "direct_share": ("node", [0.5, 0, 0]),
        },
        {"node": nodes},
    )
    mlps = xr.Dataset(
        {"total": (("pair", "node"), PAIRS[:, None] + [1.0, 7.0]), "helix_share": ("node", [1, 2])},
        {"node": ["mlp 0", "mlp 1"]},
    )
    sums = xr.Dataset(
        {"total": (("pair", "kind"), PAIRS[:, None] + [5.0, 20.0]),
         "direct": (("pair", "kind"), PAIRS[:, None] + [1.0, 8.0])},
        {"kind": ["attn", "mlps"]},
    )  # fmt: skip
    validation = xr.Dataset({"share": ("set", [0.7, 0.8])}, {"set": ["m=0", "true"]})
    found = tree(
        clock__curves__heads=curve, clock__heads=heads, clock__mlps=mlps, clock__sums=sums,
        clock__validation=validation,
    )  # fmt: skip
    read = trigonometry
    assert read.needed(found, "heads", "0.5") == 8
    assert read.share_of_first(found, 2) == 0.6
    assert [read.heads_of_class(found, name) for name in ("a,b", "a+b", "mixed")] == [2, 1, 0]
    assert (read.of_head(found, nodes[0], "total"), read.largest_mlp(found)) == (3, 7)
    assert read.of_head(found, nodes[0], "direct_share") == 0.5
    assert read.of_mlp(found, 1, "helix_share") == 2
    assert (read.validated(found, 0), read.validated(found)) == (0.7, 0.8)
    assert (read.summed(found, "attn", "direct"), read.summed(found, "mlps", "total")) == (1, 20)
    assert read.direct_of_all(found) == 9
    absent = [
        read.needed(found, "heads", "0.7"), read.needed(found, "mlps", "0.5"),
        read.share_of_first(found, 20), read.validated(found, 4), read.of_mlp(found, 9, "total"),
        read.of_head(found, "head 9.9", "total"),
    ]  # fmt: skip
    assert np.isnan(absent).all()


def test_trigonometry_errors_and_neurons():
    errors = xr.Dataset({"count": ("error", [6, 1, 3])}, {"error": [-10, 1, 10]})
    prompts = xr.Dataset({"correct": ("prompt", [True, False, False])})
    kept = xr.Dataset(
        {"accuracy": (("order", "k"), [[0.1, 0.2], [0.3, 0.4]])},
        {"order": ["random 1", "given"], "k": [512, 1024]},
    )
    replaced = kept.rename(order="content").assign_coords(content=["own", "fit"])
    found = tree(errors=errors, prompts=prompts, kept=kept, replaced=replaced)
    read = trigonometry
    assert [read.errors_of(found, error) for error in (-10, 10, 3)] == [0.6, 0.3, 0]
    assert read.negative_errors(found) == 0.6
    assert (read.n_wrong(found, numeric=False), read.n_wrong(found, numeric=True)) == (2, 10)
    assert (read.kept_neurons(found, 1024), read.fitted_neurons(found, 512)) == (0.4, 0.3)
    assert np.isnan(read.kept_neurons(found, 4096))
    without = tree(errors=errors.isel(error=[]))
    assert np.isnan([read.errors_of(without, 10), read.negative_errors(without)]).all()


def test_fourier_filters_without_their_controls():
    bands = ["nothing", "low removed, below row 20", "low removed, below row 20",
             "high removed, from row 20", "frequency 3 removed"]  # fmt: skip
    table = xr.Dataset(
        {"mean": (("condition", "measure"), np.arange(10.0).reshape(5, 2) / 10)},
        {
            "measure": ["loss", "accuracy"],
            "band": ("condition", bands),
            "modules": ("condition", ["nothing", "both", "both", "mlp", "attn"]),
            "projection": ("condition", ["nothing", "random", "filter", "filter", "filter"]),
            "rank": ("condition", [0, 19, 19, 128, 2]),
        },
    )
    found = tree(table=table)
    found.attrs["d_model"] = 128
    assert fourier.unfiltered(found, "accuracy") == 0.1
    assert fourier.unfiltered(found, "loss") == 0
    assert fourier.without(found, "both", "low", "accuracy") == 0.5
    assert fourier.without(found, "both", "low", "loss") == 0.4
    # What takes every direction measures nothing.
    assert np.isnan(fourier.without(found, "mlp", "high", "accuracy"))
    assert np.isnan(fourier.without(found, "attn", "high", "accuracy"))


def test_heuristics_mean_over_kinds():
    match = xr.Dataset({"match": (("node", "kind"), [[0, 1], [0, 0], [1, 1], [0, 0]])})
    accuracy = np.arange(8.0).reshape(2, 2, 2)
    knock_out = xr.Dataset(
        {"accuracy": (("kind", "prompts", "ablated"), accuracy)},
        {"prompts": ["related", "unrelated"], "ablated": ["heuristic", "random"]},
    )
    found = tree(heuristics=match, knock_out=knock_out)
    assert heuristics.classified(found) == 0.5
    assert heuristics.knocked_out(found, "related") == 2
    assert heuristics.knocked_out(found, "unrelated") == 4
    assert np.isnan(heuristics.knocked_out(tree(heuristics=match), "related"))


def test_beliefs_by_layer_and_norm():
    coords = {"layer": ["0", "last", "all"], "norm": ["before", "after"],
              "predictor": ["shuffled beliefs", "states"]}  # fmt: skip
    mse = xr.DataArray(np.arange(12.0).reshape(3, 2, 2), coords, tuple(coords))
    near = xr.DataArray(
        np.arange(24.0).reshape(3, 2, 2, 2),
        {**{name: coords[name] for name in ("layer", "norm")}, "space": ["states", "predicted"],
         "target": ["beliefs", "next-token distributions"]},
        ("layer", "norm", "space", "target"),
    )  # fmt: skip
    geometry = xr.Dataset({"mse": mse, "distance_r2": near})
    found = tree(geometry=geometry, mixed_states=xr.Dataset({"belief": ("mixed_state", [1, 2])}))
    assert beliefs.score(found, "mse", "last", "after") == 7
    assert beliefs.distances(found, "beliefs") == 20
    assert beliefs.distances(found, "next-token distributions") == 21
    assert beliefs.n_beliefs(found) == 2
    without = tree(geometry=geometry.sel(norm=["before"]))
    assert np.isnan(beliefs.score(without, "mse", "last", "after"))
    assert beliefs.distances(without, "beliefs") == 16


@pytest.mark.parametrize("parts", [["all"], ["all", "train", "test"]])
def test_grokking_reads_test_pairs_where_they_are_known(parts):
    progress = xr.Dataset(
        {"loss": ("part", np.arange(len(parts)) + 1.0), "readout_rank": 6,
         "direction_explained": ("key", [0.2, 0.9])},
        {"part": parts, "key": [3, 5]},
    )  # fmt: skip
    found = tree(progress=progress)
    assert grokking.over_pairs(found, "loss") == len(parts)
    assert grokking.over_all(found, "loss") == 1
    assert (grokking.n_keys(found), grokking.value(found, "readout_rank")) == (2, 6)
    assert grokking.least(found, "direction_explained") == 0.2
    assert grokking.most(found, "direction_explained") == 0.9
    assert np.isnan([grokking.phase_end(found, "formed"), grokking.value(found, "none")]).all()
    phases = {"phases": json.dumps({"formed": 30, "cleaned": None})}
    over = tree(progress=progress, over=xr.Dataset({"loss": ("step", [1.0])}, attrs=phases))
    assert grokking.phase_end(over, "formed") == 30
    assert np.isnan(grokking.phase_end(over, "cleaned"))


def test_clock_pizza_counts_circles_from_one():
    explained = xr.Dataset(
        {"explained": (("circle", "formula"), [[0.1, 0.2], [0.3, 0.4]])},
        {"circle": [0, 1], "formula": ["clock", "pizza"]},
    )
    verdict = xr.Dataset(
        {"symmetricity": 0.9, "irrelevance": ("form", [0.5, 0.6])},
    )
    found = tree(verdict=verdict, components=explained)
    assert pizza.explained(found, 1, "pizza") == 0.2
    assert pizza.explained(found, 2, "clock") == 0.3
    assert np.isnan(pizza.explained(found, 3, "clock"))
    assert [pizza.irrelevance(found, form) for form in (0, 1)] == [0.5, 0.6]
    assert pizza.symmetricity(found) == 0.9


def test_universal_numbers_by_probe_and_layer():
    curve = xr.Dataset(
        {"accuracy": (("probe", "layer"), [[0.1, 0.9, 0.4], [0.2, 0.3, 0.5]])},
        {"probe": ["fourier", "param-sin"], "layer": [-1, 0, 1]},
    )
    task = curve.expand_dims(variable=["a"], position=["a", "end"])
    other = xr.Dataset({"accuracy": ("tested_on", [0.1, 0.8, 0.2])}, {"tested_on": [-1, 0, 1]})
    found = tree(probes=curve, task_probes=task, transfer__other_layers=other)
    found.attrs["n_layers"] = 2
    read = universal
    layers = ("best", "first", "last")
    assert [read.in_texts(found, "param-sin", at) for at in layers] == [0.5, 0.2, 0.5]
    assert [read.of_number(found, "a", "end", "fourier", at) for at in layers] == [0.9, 0.1, 0.4]
    assert [read.of_other_layers(found, at) for at in layers] == [0.8, 0.1, 0.2]
    # Layers in another order are the same; those that were not read have no figure.
    turned = tree(probes=curve.isel(layer=[2, 0]))
    turned.attrs["n_layers"] = 2
    assert [read.in_texts(turned, "param-sin", at) for at in layers] == [0.5, 0.2, 0.5]
    inner = tree(probes=curve.sel(layer=[0]))
    inner.attrs["n_layers"] = 2
    absent = [
        read.in_texts(inner, "param-sin", "first"), read.in_texts(inner, "param-sin", "last"),
        read.in_texts(found, "sin", "best"), read.of_number(found, "b", "b", "fourier", "best"),
        read.of_other_layers(tree(probes=curve), "best"),
    ]  # fmt: skip
    assert np.isnan(absent).all()


def test_universal_numbers_of_pairs_of_different_models():
    names = ["x/Llama-3.2-1B, embedding", "x/Llama-3.2-3B, layer 2", "smollm2, embedding"]
    pairs = xr.Dataset(
        {"value": (("pair", "measure"), [[9.0], [0.1], [0.2], [0.6]]),
         "null_mean": (("pair", "null", "measure"), [[[8.0]], [[1.0]], [[2.0]], [[3.0]]])},
        {"measure": ["cka"], "null": ["tokens"],
         "a": ("pair", [names[0].replace("embedding", "layer 1"), *names]),
         "b": ("pair", [names[0], names[1], names[2], names[0]])},
    )  # fmt: skip
    found = tree(pairs=pairs)
    assert universal.alike(found, "cka") == 0.2
    assert universal.alike(found, "cka", tokens=True) == 2
    assert universal.alike(found, "cka", "Llama-3", "Llama-3") == 0.1
    assert universal.alike(found, "cka", "3B", "smollm2") == 0.2
    assert np.isnan(universal.alike(found, "cka", "OLMo-2"))
    assert np.isnan(universal.alike(tree(pairs=pairs.isel(pair=[0])), "cka"))


def test_universal_numbers_of_steering_and_words():
    swept = xr.Dataset(
        {"decoded": (("layer", "prompt"), [[1, 5, 5, 5], [1, 2, 5, 3]]),
         "answer": ("prompt", [1, 2, 3, 3]), "right_before": ("prompt", [True] + 3 * [False])},
    )  # fmt: skip
    best = xr.Dataset({"repaired": ("vector", [0.3, 0.7])}, {"vector": ["probe", "helix"]})
    right = xr.Dataset(
        {"n_right": (("probe", "layer"), [[7, 7], [2, 3]])}, {"probe": ["linear", "param-sin"]}
    )
    found = tree(steering=swept, best=best, ordinals__weekdays=right)
    assert universal.repaired(found) == 0.3
    assert universal.readable(found) == pytest.approx(2 / 3)
    assert universal.n_right(found, "weekdays") == 3
    assert np.isnan(universal.n_right(found, "months"))
    without = tree(ordinals__weekdays=right.sel(probe=["linear"]))
    assert np.isnan(universal.n_right(without, "weekdays"))
