"""Made-up measurements of the shape that `mechnum.patching.results` gives."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from mechnum.patching.statistics import summarise

N_PAIRS = 20


def node_results(nodes: str = "heads", seed: int = 0, **sizes: int) -> xr.DataTree:
    """Effects of nodes over (pair, *sizes); `position` counts from the end."""
    rng = np.random.default_rng(seed)
    dims = sizes or {"layer": 3, "head": 4}
    total = rng.normal(rng.normal(0, 2, tuple(dims.values())), 1, (N_PAIRS, *dims.values()))
    direct = 0.3 * total + rng.normal(0, 0.1, total.shape)
    data = {"total": total, "direct": direct, "direct_frozen": direct + 0.1}
    coords: dict[str, object] = {dim: np.arange(size) for dim, size in dims.items()}
    if "position" in dims:
        coords["position"] = np.arange(-dims["position"], 0)
    if nodes == "residual":
        coords["layer"] = np.arange(-1, dims["layer"] - 1)
    if "node" in dims:
        coords["node"] = [f"mlp {index}" for index in range(dims["node"])]
    measured = xr.Dataset(
        {name: (("pair", *dims), values) for name, values in data.items()}, coords
    )
    measured["indirect"] = measured["total"] - measured["direct"]
    return _tree("nodes", measured, {"nodes": nodes, "position": "end", "norm": "exact"})


def edge_results(
    n_senders: int = 5, n_receivers: int = 6, positions: int = 0, seed: int = 0
) -> xr.DataTree:
    """Effects of edges; receiver j reads before sender i writes where j < i."""
    rng = np.random.default_rng(seed)
    lead = (N_PAIRS, positions) if positions else (N_PAIRS,)
    shape = (n_senders, n_receivers)
    effect = rng.normal(rng.normal(0, 2, shape), 1, (*lead, *shape))
    effect[..., np.tril(np.ones(shape, dtype=bool), -1)] = np.nan
    dims = ("pair", *(["position"] if positions else []), "sender", "receiver")
    coords: dict[str, object] = {
        "sender": [f"head {index}.0" for index in range(n_senders)],
        "receiver": [f"q {index + 1}.0" for index in range(n_receivers)],
    }
    if positions:
        coords["position"] = np.arange(-positions, 0)
    measured = xr.Dataset({"effect": (dims, effect)}, coords)
    said = {"variant": "edge", "frozen": "attn,mlps", "norm": "exact", "position": "all"}
    return _tree("edges", measured, said)


def circuit_results(n_layers: int = 3, n_heads: int = 3, seed: int = 0) -> xr.DataTree:
    """A circuit of heads and MLPs with all edges between them, and what was measured of it."""
    rng = np.random.default_rng(seed)
    nodes = [("embed", "embed", np.nan, np.nan)]
    for layer in range(n_layers):
        nodes += [(f"head {layer}.{h}", "head", layer, h) for h in range(n_heads)]
        nodes.append((f"mlp {layer}", "mlp", layer, np.nan))
    nodes.append(("logits", "logits", np.nan, np.nan))
    edges = []
    for sender, kind, layer, _ in nodes[:-1]:
        for reader, own, above, index in nodes[1:]:
            if own != "logits" and kind != "embed" and not above > layer:
                continue
            inputs = {"head": [f"{of} {above}.{index}" for of in "qkv"], "mlp": [f"mlp_in {above}"]}
            edges += [(sender, name, reader) for name in inputs.get(own, ["logits"])]
    effect = rng.normal(0, 1, len(edges)) ** 3
    columns = list(zip(*nodes))
    circuit = xr.Dataset(
        {name: ("node", list(of)) for name, of in
         zip(("name", "kind", "layer", "index"), columns)}
        | {name: ("edge", list(of)) for name, of in
           zip(("sender", "receiver", "reader"), zip(*edges))}
        | {"effect": ("edge", effect), "low": ("edge", effect - 0.2),
           "high": ("edge", effect + 0.2), "link": ("edge", np.zeros(len(edges), dtype=bool))}
    )  # fmt: skip
    fractions = [0.0, 0.01, 0.1, 1.0]
    random = np.array([[0, 0, 0], [0, 0, 0.1], [0.1, 0.2, 0.1], [1, 1, 1.0]])
    curve = xr.Dataset(
        {
            "faithfulness": ("fraction", [0.0, 0.3, 0.8, 1.0]),
            "low": ("fraction", [0.0, 0.2, 0.7, 1.0]),
            "high": ("fraction", [0.0, 0.4, 0.9, 1.0]),
            "n_edges": ("fraction", [0, 1, 10, 100]),
            "random": (("fraction", "draw"), random),
            "CPR": 0.81, "CMD": 0.19, "random_CPR": ("draw", [0.3, 0.4, 0.5]),
            "random_CMD": ("draw", [0.6, 0.5, 0.4]), "status": "measured",
        },
        {"fraction": fractions},
    )  # fmt: skip
    faithfulness = xr.Dataset(
        {"faithfulness": ("circuit", [0.75]), "low": ("circuit", [0.7]),
         "high": ("circuit", [0.8]), "status": ("circuit", ["measured"])},
        {"circuit": ["circuit"]},
    )  # fmt: skip
    completeness = xr.Dataset(
        {"completeness": 0.9, "incompleteness": ("subset", [0.1, 0.25]), "status": "measured"}
    )
    minimality = xr.Dataset({"minimality": 0.5, "status": "measured"})
    contents = ['{"edges": ["a</script>b"]}\n', "<graphml>é &amp;</graphml>\n"]
    files = xr.Dataset(
        {"file": ("program", ["circuit-eap-ig.json", "circuit.graphml"]),
         "content": ("program", contents)},
        {"program": ["EAP-IG and MIB", "GraphML"]},
        {"left_out": '{"Neuronpedia": "the file has 20 MB"}'},
    )  # fmt: skip
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=_attrs()),
            "/circuit": circuit,
            "/files": files,
            "/curve": curve,
            "/faithfulness": faithfulness,
            "/completeness": completeness,
            "/minimality": minimality,
            "/prompts": _prompts(),
        }
    )


def _tree(group: str, measured: xr.Dataset, said: dict[str, object]) -> xr.DataTree:
    rng = np.random.default_rng(1)
    values = {str(name): of for name, of in measured.data_vars.items()}
    metrics = {
        "clean_metric": ("pair", rng.normal(9, 1, N_PAIRS)),
        "corrupt_metric": ("pair", rng.normal(-8, 1, N_PAIRS)),
    }
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=_attrs() | said),
            f"/{group}": measured.assign(metrics),
            **{f"/statistics/{name}": summarise(of) for name, of in values.items()},
            "/prompts": _prompts(),
        }
    )


def _attrs() -> dict[str, object]:
    return {
        "model": "adder-gptj",
        "task": "addition",
        "template": "{a}+{b}=",
        "bos": "none: the tokenizer has no such token",
        "metric": "logit_diff",
        "direction": "denoise",
        "values": "other",
        "n_pairs": N_PAIRS,
        "seed": 0,
        "accuracy": 0.99,
        "n_prompts": 100,
        "command": "mechnum patch adder-gptj",
        "versions": json.dumps({"mechnum": "0.1.0"}),
    }


def _prompts() -> xr.Dataset:
    return xr.Dataset(
        {
            "tokens": ("position", [3, 200, 4, 201]),
            "corrupt_tokens": ("position", [5, 200, 4, 201]),
        },
        {
            "token": ("position", ["3", "+", "4", "="]),
            "corrupt_token": ("position", ["5", "+", "4", "="]),
        },
        {
            "positions": json.dumps({"a": 0, "op": 1, "b": 2, "end": 3}),
            "from_the_end": json.dumps({"a": -4, "op": -3, "b": -2, "end": -1}),
        },
    )
