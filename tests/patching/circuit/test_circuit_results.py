"""A circuit as plain data: every edge ends at a node of the picture, shared keys at their heads.

And the files of it that pages offer.
"""

from __future__ import annotations

import json

import numpy as np

from mechnum.models.wrap import wrap
from mechnum.patching import Circuit
from mechnum.patching.circuit import results
from mechnum.patching.circuit.results import circuit_files, circuit_results
from mechnum.patching.edges import Edge
from tests import fixtures


def rows(dataset) -> list[tuple[str, str, str, bool]]:
    columns = (dataset[name].values.tolist() for name in ("sender", "receiver", "reader", "link"))
    return list(zip(*columns))


def test_inputs_of_heads_without_groups_end_at_the_head():
    spec = wrap(fixtures.gptj(), name="tiny").spec
    edge = Edge.parse("head 0.1 -> v 2.g3")
    scores, intervals = {edge: 0.5}, {edge: (0.25, 0.75)}
    circuit = Circuit(
        frozenset({edge, Edge.parse("embed -> mlp_in 1"), Edge.parse("mlp 1 -> logits")}),
        scores,
        intervals,
    )
    found = circuit_results(circuit, spec)
    assert rows(found) == [
        ("embed", "mlp_in 1", "mlp 1", False),
        ("head 0.1", "v 2.g3", "head 2.3", False),
        ("mlp 1", "logits", "logits", False),
    ]
    assert set(found["name"].values) == {"embed", "head 0.1", "head 2.3", "mlp 1", "logits"}
    assert found["effect"].values[1] == 0.5
    assert (found["low"].values[1], found["high"].values[1]) == (0.25, 0.75)
    assert np.isnan(found["effect"].values[[0, 2]]).all()
    by_name = dict(zip(found["name"].values, found["layer"].values))
    assert by_name["head 2.3"] == 2
    assert np.isnan(by_name["embed"])


def test_shared_keys_lead_to_the_heads_that_the_circuit_has():
    """Four heads share two groups: heads 2 and 3 read group 1, heads 0 and 1 do not."""
    spec = wrap(fixtures.llama(), name="tiny").spec
    circuit = Circuit.of(
        ["embed -> k 1.g1", "head 1.3 -> logits", "head 1.0 -> logits", "head 2.3 -> logits"]
    )
    found = rows(circuit_results(circuit, spec))
    assert ("embed", "k 1.g1", "kv 1.g1", False) in found
    assert [row for row in found if row[3]] == [("kv 1.g1", "head 1.3", "head 1.3", True)]


def test_the_files_are_those_that_are_saved(tmp_path):
    """Each is the file of `save`, which `load` gives back; what a format lacks is said."""
    spec = wrap(fixtures.gptj(), name="tiny").spec
    edge = Edge.parse("head 0.1 -> q 2.3")
    circuit = Circuit(frozenset({edge, Edge.parse("mlp 1 -> logits")}), {edge: 0.5})
    found = circuit_files(circuit, spec)
    assert found["program"].values.tolist() == ["EAP-IG and MIB", "Neuronpedia", "GraphML"]
    for name, content in zip(found["file"].values, found["content"].values):
        path = tmp_path / name
        path.write_text(content)
        assert Circuit.load(path, spec).edges == circuit.edges, name
    circuit.save(tmp_path / "own.json", spec)
    assert (tmp_path / "own.json").read_text() == found["content"].values[0]
    assert "left_out" not in found.attrs
    neurons = circuit_files(Circuit.of(["neuron 1.7 -> logits"]), spec)
    assert "EAP-IG and MIB" not in neurons["program"]
    assert "EAP-IG" in json.loads(neurons.attrs["left_out"])["EAP-IG and MIB"]


def test_large_files_are_left_out(monkeypatch):
    spec = wrap(fixtures.gptj(), name="tiny").spec
    monkeypatch.setattr(results, "LARGEST", 10)
    found = circuit_files(Circuit.of(["mlp 1 -> logits"]), spec)
    assert found.sizes["program"] == 0
    assert set(json.loads(found.attrs["left_out"])) == {"EAP-IG and MIB", "Neuronpedia", "GraphML"}
