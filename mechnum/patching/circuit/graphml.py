"""GraphML, for graph tools: the circuit's components, and one arrow for each edge.

An edge to the keys or values of a group is an arrow to each head that reads them, with the whole
score.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field

from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit.circuit import Circuit, readers
from mechnum.patching.circuit.records import (
    Attributes,
    EdgeRecord,
    attributes,
    checked,
    circuit_of,
    json_text,
    records,
    refuse,
)
from mechnum.patching.nodes import Node


class _Attributes(BaseModel):
    model_config = ConfigDict(strict=True)

    attrs: Attributes = Field(default_factory=dict)


def encode(circuit: Circuit, spec: ModelSpec) -> str:
    """Nodes with `kind`, `layer` and `index`; arrows with `edge`, `score`, `low` and `high`."""
    graph = nx.MultiDiGraph(attrs=json_text(attributes(circuit)))
    for edge, record in records(circuit).items():
        for reader in readers(edge.receiver, spec):
            for node in (edge.sender, reader):
                graph.add_node(str(node), **_place(node))
            graph.add_edge(str(edge.sender), str(reader), **record.model_dump(exclude_none=True))
    return "\n".join(nx.generate_graphml(graph))


def decode(text: str, path: Path) -> Circuit:
    """The circuit that `encode` wrote.

    Raises:
        MechnumError: on text that is no GraphML of a circuit.
    """
    try:
        graph = nx.parse_graphml(text, force_multigraph=True)
        attrs = json.loads(graph.graph.get("attrs", "{}"))
    except (nx.NetworkXError, ParseError, ValueError, KeyError, TypeError, AttributeError) as error:
        refuse(path, f"{type(error).__name__}: {str(error) or 'not GraphML'}".splitlines()[0])
    found = [
        checked(
            EdgeRecord, {key: data[key] for key in EdgeRecord.model_fields if key in data}, path
        )
        for *_, data in graph.edges(data=True)
    ]
    return circuit_of(found, checked(_Attributes, {"attrs": attrs}, path).attrs)


def _place(node: Node) -> dict[str, Any]:
    place = {"kind": node.kind, "layer": node.layer, "index": node.index}
    return {key: value for key, value in place.items() if value is not None}
