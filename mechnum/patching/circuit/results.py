"""A circuit as plain data: its nodes, the node that each of its edges ends at, and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit.circuit import Circuit, FileFormat, owner, readers
from mechnum.patching.circuit.files import encode_circuit
from mechnum.patching.edges import Edge
from mechnum.patching.nodes import Node

LARGEST = 2**21
"""Characters of the largest file that a page offers, which has to stay small."""
_PROGRAMS: Mapping[str, tuple[FileFormat, str]] = {
    "EAP-IG and MIB": ("eap-ig", "-eap-ig.json"),
    "Neuronpedia": ("neuronpedia", "-neuronpedia.json"),
    "GraphML": ("graphml", ".graphml"),
}


def circuit_results(circuit: Circuit, spec: ModelSpec) -> xr.Dataset:
    """What `mechnum.report` draws of a circuit: the group `/circuit` of a tree of results.

    Returns:
        `name`, `kind`, `layer`, `index` over node (NaN where there is none); `sender`, `receiver`,
        `reader` (the node that the receiver is an input of), `effect`, `low` and `high` over edge,
        NaN where the circuit has no score or interval. Keys and values belong to their head, or,
        where heads share them, to a node of their own; `link` marks the further rows that lead
        from such a node to each of these heads, and are no edges of the circuit.
    """
    readers = {edge: _reader(edge.receiver, spec) for edge in sorted(circuit.edges, key=str)}
    nodes = {edge.sender for edge in circuit.edges} | set(readers.values())
    order = sorted(nodes, key=lambda node: (node.layer or 0, node))
    rows = [
        (str(edge.sender), str(edge.receiver), str(reader), *_score(circuit, edge), False)
        for edge, reader in readers.items()
    ]
    rows += [
        (str(group), str(head), str(head), np.nan, np.nan, np.nan, True)
        for group in order
        for head in order
        if _serves(group, head, spec)
    ]
    names = ("sender", "receiver", "reader", "effect", "low", "high", "link")
    return xr.Dataset(
        {
            "name": ("node", [str(node) for node in order]),
            "kind": ("node", [str(node.kind) for node in order]),
            "layer": ("node", _numbers([node.layer for node in order])),
            "index": ("node", _numbers([node.index for node in order])),
            **{name: ("edge", [row[at] for row in rows]) for at, name in enumerate(names)},
        }
    )


def circuit_files(circuit: Circuit, spec: ModelSpec, name: str = "circuit") -> xr.Dataset:
    """The circuit's files for other programs, which a page offers: the group `/files`.

    Returns:
        Over `program`: `file`, its name, and `content`. The attribute `left_out` says, as JSON, why
        a program has none: its format lacks a kind of node, or the file is large, as EAP-IG's is,
        which holds all edges of the model (`Circuit.save` writes it).
    """
    found, left_out = [], {}
    for program, (file_format, ending) in _PROGRAMS.items():
        try:
            content = encode_circuit(circuit, spec, file_format, name)
        except MechnumError as reason:
            left_out[program] = str(reason)
            continue
        if len(content) > LARGEST:
            left_out[program] = f"the file has {len(content) / 2**20:.0f} MB"
            continue
        found.append((program, name + ending, content))
    columns = list(zip(*found, strict=True)) if found else [(), (), ()]
    return xr.Dataset(
        {
            "file": ("program", np.array(columns[1], dtype=object)),
            "content": ("program", np.array(columns[2], dtype=object)),
        },
        coords={"program": np.array(columns[0], dtype=object)},
        attrs={"left_out": json.dumps(left_out)} if left_out else {},
    )


def circuit_of(results: xr.Dataset) -> Circuit:
    """The circuit that `circuit_results` describes, with its scores and intervals."""
    # netCDF has no booleans.
    own = results.isel(edge=~results["link"].values.astype(bool))
    names = zip(own["sender"].values, own["receiver"].values, strict=True)
    edges = [Edge.parse(f"{sender} -> {receiver}") for sender, receiver in names]
    scores = dict(zip(edges, own["effect"].values.tolist(), strict=True))
    ends = zip(own["low"].values.tolist(), own["high"].values.tolist(), strict=True)
    intervals = {edge: end for edge, end in zip(edges, ends, strict=True) if not np.isnan(end[0])}
    known = {edge: score for edge, score in scores.items() if not np.isnan(score)}
    return Circuit(frozenset(edges), known, intervals, dict(results.attrs))


def _reader(receiver: Node, spec: ModelSpec) -> Node:
    reading = readers(receiver, spec)
    return reading[0] if len(reading) == 1 else owner(receiver)


def _serves(group: Node, head: Node, spec: ModelSpec) -> bool:
    """Whether the head reads the keys and values of the group."""
    return group.kind == "kv" and head in readers(Node("k", group.layer, group.index), spec)


def _score(circuit: Circuit, edge: Edge) -> tuple[float, float, float]:
    low, high = circuit.intervals.get(edge, (np.nan, np.nan))
    return circuit.scores.get(edge, np.nan), low, high


def _numbers(values: list[int | None]) -> list[float]:
    return [np.nan if value is None else float(value) for value in values]
