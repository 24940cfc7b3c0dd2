"""The graph JSON of EAP-IG and of the MIB benchmark's circuit track.

Hanna, Pezzelle & Belinkov 2024, and Mueller et al. 2025: `cfg`, `nodes` and `edges`, which are
named `input->a0.h0<q>`, `a0.h0->m1`, `m1->logits`; each has a `score` and is `in_graph` or not.
Nodes are the embedding, heads, MLPs and the logits. Their heads have keys and values of their
own, ours share them in groups: a group's edge is written once for each of its heads, with equal
parts of its score; edges that are read are merged, in the circuit where one of them is, with the
sum of their scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit.circuit import Circuit, readers
from mechnum.patching.circuit.graph import Graph
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
from mechnum.patching.edges import Edge
from mechnum.patching.nodes import Node, NodeKind

_COMPONENT = re.compile(r"input|m(?P<mlp>\d+)|a(?P<layer>\d+)\.h(?P<head>\d+)")
_RECEIVER = re.compile(r"logits|m(?P<mlp>\d+)|a(?P<layer>\d+)\.h(?P<head>\d+)<(?P<input>[qkv])>")
_INPUTS: Mapping[str, NodeKind] = {"q": "q", "k": "k", "v": "v"}


class _Config(BaseModel):
    """Of `cfg`, what the graph's nodes and edges follow from."""

    model_config = ConfigDict(strict=True)

    n_layers: int = Field(gt=0)
    n_heads: int = Field(gt=0)
    parallel_attn_mlp: bool
    n_key_value_heads: int | None = Field(default=None, gt=0)


class _NodeEntry(BaseModel):
    """`neurons` says which coordinates of the node's output are in the graph."""

    model_config = ConfigDict(strict=True)

    in_graph: bool
    neurons: list[bool] | None = None


class _EdgeEntry(BaseModel):
    model_config = ConfigDict(strict=True)

    score: FiniteFloat | None = None
    in_graph: bool


class _Ours(BaseModel):
    """What a circuit knows and the format has no place for; their reader passes over it."""

    model_config = ConfigDict(strict=True)

    attrs: Attributes = Field(default_factory=dict)
    unscored: list[str] = Field(default_factory=list)
    intervals: dict[str, list[FiniteFloat]] = Field(default_factory=dict)


class _File(BaseModel):
    """Older versions write a node as a boolean, and `n_pos` where nodes have positions."""

    model_config = ConfigDict(strict=True)

    cfg: _Config
    nodes: dict[str, bool | _NodeEntry]
    edges: dict[str, _EdgeEntry]
    n_pos: int | None = None
    mechnum: _Ours = Field(default_factory=_Ours)


def encode(circuit: Circuit, spec: ModelSpec) -> str:
    """All nodes and edges of the model, those of the circuit `in_graph`; other scores are 0.

    Raises:
        MechnumError: on circuits with neurons, which have no place in that graph.
    """
    known = records(circuit)
    for edge in known:
        if edge.sender.kind == "neuron" or edge.receiver.kind == "neuron_in":
            raise MechnumError(
                f"{edge} has no place in an EAP-IG graph, whose nodes are heads and whole MLPs: "
                "save the circuit in another format"
            )
    edges: dict[str, dict[str, Any]] = {}
    inside = {"logits"}
    graph = Graph(spec)
    for edge in graph.edges():
        record = known.get(edge)
        names = [_edge_name(edge, reader) for reader in readers(edge.receiver, spec)]
        scores = _parts(0.0 if record is None or record.score is None else record.score, len(names))
        for name, score in zip(names, scores, strict=True):
            edges[name] = {"score": score, "in_graph": record is not None}
        if record is not None:
            inside.add(_name(edge.sender))
            inside |= {_name(reader) for reader in readers(edge.receiver, spec)}
    return json_text(
        {
            "cfg": {
                "n_layers": spec.n_layers,
                "n_heads": spec.n_heads,
                "parallel_attn_mlp": spec.parallel,
                "d_model": spec.d_model,
                "n_key_value_heads": spec.n_kv_heads,
            },
            "nodes": {
                name: {"in_graph": name in inside}
                for name in [*map(_name, graph.senders), "logits"]
            },
            "edges": edges,
            "mechnum": {
                "attrs": attributes(circuit),
                "unscored": [one.edge for one in known.values() if one.score is None],
                "intervals": {
                    one.edge: [one.low, one.high] for one in known.values() if one.low is not None
                },
            },
        }
    )


def decode(content: object, path: Path, spec: ModelSpec | None = None) -> Circuit:
    """The edges that are in the graph, and whose nodes are.

    Args:
        spec: of the model; without it the file says how many key-value groups there are, and
            where it does not, as other programs', each head has its own.

    Raises:
        MechnumError: on content that is no such graph, graphs of another model, with positions,
            or with parts of a node's output.
    """
    file = checked(_File, content, path)
    out = {name for name, node in file.nodes.items() if not _in_graph(name, node, path)}
    inside = set()
    scores: dict[Edge, list[float]] = {}
    for name, edge in _edges(file, path, spec).items():
        entry = file.edges[name]
        ends = {part.partition("<")[0] for part in name.split("->")} - {"logits"}
        if entry.in_graph and not ends & out:
            inside.add(edge)
        if entry.score is not None:
            scores.setdefault(edge, []).append(entry.score)
    unscored = set(file.mechnum.unscored)
    found = []
    for edge in inside:
        score = math.fsum(scores[edge]) if edge in scores and str(edge) not in unscored else None
        interval = file.mechnum.intervals.get(str(edge), [])
        low, high = interval if len(interval) == 2 else (None, None)
        found.append(EdgeRecord(edge=str(edge), score=score, low=low, high=high))
    return circuit_of(found, file.mechnum.attrs)


def scores_of(content: object, path: Path, spec: ModelSpec | None = None) -> xr.DataArray:
    """The scores of all edges, in the circuit or not, over (sender, receiver); NaN without one.

    Raises:
        MechnumError: as in `decode`.
    """
    file = checked(_File, content, path)
    graph = Graph(spec or _spec(file.cfg, path))
    table = np.full((len(graph.senders), len(graph.receivers)), np.nan)
    scores: dict[Edge, list[float]] = {}
    for name, edge in _edges(file, path, spec).items():
        if (score := file.edges[name].score) is not None:
            scores.setdefault(edge, []).append(score)
    places = graph.places(scores)
    table[places[:, 0], places[:, 1]] = [math.fsum(parts) for parts in scores.values()]
    return xr.DataArray(
        table,
        dims=("sender", "receiver"),
        coords={
            "sender": list(map(str, graph.senders)),
            "receiver": list(map(str, graph.receivers)),
        },
        attrs=file.mechnum.attrs,
    )


def _edges(file: _File, path: Path, spec: ModelSpec | None) -> dict[str, Edge]:
    """The edge that each name of the file is, or is a part of."""
    if file.n_pos is not None:
        refuse(path, "its nodes have positions, and those of circuits have none")
    own = _spec(file.cfg, path)
    if spec is not None:
        said = (own.n_layers, own.n_heads, own.parallel, file.cfg.n_key_value_heads)
        wanted = (spec.n_layers, spec.n_heads, spec.parallel, spec.n_kv_heads)
        if said[:3] != wanted[:3] or said[3] not in (None, wanted[3]):
            refuse(path, f"it is of another model: {file.cfg!r}")
    spec = spec or own
    edges = {name: _edge(name, spec, path) for name in file.edges}
    for edge in set(edges.values()):
        edge.check(spec)
    return edges


def _spec(config: _Config, path: Path) -> ModelSpec:
    """The model as far as nodes and edges follow from it; every size that they do not is 1."""
    groups = config.n_key_value_heads or config.n_heads
    if config.n_heads % groups:
        refuse(path, f"{config.n_heads} heads cannot share {groups} keys evenly")
    sizes = dict.fromkeys(("d_model", "d_head", "d_mlp", "d_vocab", "d_vocab_out", "n_ctx"), 1)
    return ModelSpec(
        family="native",
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        n_kv_heads=groups,
        norm=None,
        final_norm=None,
        norm_eps=0.0,
        activation="relu",
        parallel=config.parallel_attn_mlp,
        **sizes,
    )


def _in_graph(name: str, node: bool | _NodeEntry, path: Path) -> bool:
    if isinstance(node, bool):
        return node
    if node.in_graph and node.neurons is not None and not all(node.neurons):
        refuse(path, f"only some coordinates of {name} are in it, and circuits have whole nodes")
    return node.in_graph


def _edge(name: str, spec: ModelSpec, path: Path) -> Edge:
    first, _, second = name.partition("->")
    sender, receiver = _sender(first), _receiver(second, spec.heads_per_group)
    if sender is None or receiver is None:
        refuse(path, f"{name!r} names no edge")
    return Edge(sender, receiver)


# A large model has hundreds of thousands of edges, and hundreds of nodes.
@lru_cache(maxsize=10_000)
def _sender(name: str) -> Node | None:
    match = _COMPONENT.fullmatch(name)
    if match is None:
        return None
    if match["mlp"] is not None:
        return Node("mlp", int(match["mlp"]))
    if match["layer"] is not None:
        return Node("head", int(match["layer"]), int(match["head"]))
    return Node("embed")


@lru_cache(maxsize=10_000)
def _receiver(name: str, heads_per_group: int) -> Node | None:
    match = _RECEIVER.fullmatch(name)
    if match is None:
        return None
    if match["mlp"] is not None:
        return Node("mlp_in", int(match["mlp"]))
    if match["layer"] is not None:
        kind, head = _INPUTS[match["input"]], int(match["head"])
        index = head if kind == "q" else head // heads_per_group
        return Node(kind, int(match["layer"]), index)
    return Node("logits")


def _edge_name(edge: Edge, reader: Node) -> str:
    which = f"<{edge.receiver.kind}>" if edge.receiver.kind in _INPUTS else ""
    return f"{_name(edge.sender)}->{_name(reader)}{which}"


def _name(node: Node) -> str:
    if node.kind == "head":
        return f"a{node.layer}.h{node.index}"
    return {"embed": "input", "mlp": f"m{node.layer}", "logits": "logits"}[node.kind]


def _parts(score: float, count: int) -> list[float]:
    """`count` equal numbers whose exact sum rounds to the score again."""
    equal = [score / count] * (count - 1)
    # Rounded once: the rest differs from the exact one by far less than the score's last bit.
    return [*equal, math.fsum([score, *(-part for part in equal)])]
