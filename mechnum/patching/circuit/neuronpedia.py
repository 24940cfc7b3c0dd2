"""Attribution graphs as Neuronpedia and circuit-tracer show them.

Neuronpedia's graph schema 1.0.0: `metadata`, `qParams`, `nodes` and `links`. The nodes are the
circuit's components in rows by layer; a link stands for all edges between two components, and its
`edges`, which their viewer passes over, say which they are. A link to a key-value group's head
has the whole score of the group's edge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mechnum import __version__
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

# A circuit's nodes have no position: its only column stands for every token of the prompt.
_COLUMN = "all positions"
# The kinds that the viewer knows are `embedding` and `logit`; others are circles.
_TYPES: Mapping[str, str] = {
    "embed": "embedding",
    "head": "attention head",
    "mlp": "mlp",
    "neuron": "neuron",
    "logits": "logit",
}


class _Metadata(BaseModel):
    model_config = ConfigDict(strict=True)

    generation_settings: Attributes = Field(default_factory=dict)


class _Link(BaseModel):
    model_config = ConfigDict(strict=True)

    source: str
    target: str
    weight: float
    edges: list[EdgeRecord] | None = None


class _File(BaseModel):
    model_config = ConfigDict(strict=True)

    metadata: dict[str, Any]
    nodes: list[dict[str, Any]]
    links: list[_Link]


def encode(circuit: Circuit, spec: ModelSpec, name: str) -> str:
    """The circuit's graph; weights are summed scores, and edges without one count as 1.

    Their viewer refuses graphs in which nothing but the logits lies above layer 0.

    Args:
        name: becomes the graph's slug.
    """
    attrs = attributes(circuit)
    edges: dict[tuple[Node, Node], list[EdgeRecord]] = {}
    for edge, record in records(circuit).items():
        for reader in readers(edge.receiver, spec):
            edges.setdefault((edge.sender, reader), []).append(record)
    places = {
        node: _place(node, spec) for node in sorted({node for ends in edges for node in ends})
    }
    nodes = [_node(node, *place) for node, place in sorted(places.items(), key=lambda at: at[1])]
    return json_text(
        {
            "metadata": {
                "slug": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "circuit",
                "scan": str(attrs.get("model", "model")).rpartition("/")[2].lower(),
                "prompt_tokens": [_COLUMN],
                "prompt": str(attrs.get("task", _COLUMN)),
                "info": {"generator": {"name": "mechnum", "version": __version__}},
                "generation_settings": attrs,
            },
            "qParams": {
                # The viewer's second picture is of the pinned nodes: all of them.
                "pinnedIds": [node["node_id"] for node in nodes],
                "supernodes": [],
                "linkType": "both",
                "clickedId": "",
                "sg_pos": "",
            },
            "nodes": nodes,
            "links": [
                {
                    "source": _id(*places[source]),
                    "target": _id(*places[target]),
                    "weight": sum(1.0 if one.score is None else one.score for one in found),
                    "edges": [one.model_dump(exclude_none=True) for one in found],
                }
                for (source, target), found in edges.items()
            ],
        }
    )


def decode(content: object, path: Path) -> Circuit:
    """The circuit that `encode` wrote.

    Raises:
        MechnumError: on content that is no such graph, and on graphs of transcoder features, which
            are no nodes of the model.
    """
    file = checked(_File, content, path)
    metadata = checked(_Metadata, file.metadata, path)
    found: list[EdgeRecord] = []
    for link in file.links:
        if link.edges is None:
            refuse(path, "its links name no edges: features of transcoders are no nodes of a model")
        found += link.edges
    return circuit_of(found, metadata.generation_settings)


def _place(node: Node, spec: ModelSpec) -> tuple[int, int]:
    """Row and number in it: the viewer tells nodes apart by these."""
    if node.layer is None:
        return (-1, 0) if node.kind == "embed" else (spec.n_layers, 0)
    first = {"head": 0, "mlp": spec.n_heads, "neuron": spec.n_heads + 1}[node.kind]
    return node.layer, first + (node.index or 0)


def _node(node: Node, row: int, number: int) -> dict[str, Any]:
    logits = node.kind == "logits"
    return {
        "node_id": _id(row, number),
        "feature": number,
        "layer": _layer(row),
        "ctx_idx": 0,
        "feature_type": _TYPES[node.kind],
        "token_prob": 1.0 if logits else 0.0,
        "is_target_logit": logits,
        "run_idx": 0,
        "reverse_ctx_idx": 0,
        "jsNodeId": f"{_layer(row)}_{number}-0",
        # The viewer looks for a probability in the label of every logit.
        "clerp": f"{node} (p=not measured)" if logits else str(node),
    }


def _id(row: int, number: int) -> str:
    return f"{_layer(row)}_{number}_0"


def _layer(row: int) -> str:
    return "E" if row < 0 else str(row)
