"""A circuit as plain data: every edge ends at a node of the picture, shared keys at their heads."""

from __future__ import annotations

import numpy as np

from mechnum.models.wrap import wrap
from mechnum.patching import Circuit
from mechnum.patching.circuit.results import circuit_results
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
