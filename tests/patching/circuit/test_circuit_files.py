"""Circuits come back from every format as they were, and the files are what the others read."""

from __future__ import annotations

import json
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.models.spec import spec_from_hf
from mechnum.patching.circuit import eap_ig
from mechnum.patching.circuit.circuit import Circuit, readers
from mechnum.patching.circuit.files import read_scores
from mechnum.patching.circuit.graph import Graph
from mechnum.patching.edges import Edge
from mechnum.patching.node_names import parse_node
from tests import fixtures

ARCHITECTURES = ("gpt2", "gptj", "gpt_neox sequential", "llama grouped")
FORMATS = ("eap-ig", "neuronpedia", "graphml")
ATTRS = {
    "model": "org/Some-Model",
    "task": "addition",
    "metric": "logit_diff",
    "n": 3,
    "share": 0.1,
}


def spec_of(architecture):
    return spec_from_hf(fixtures.ARCHITECTURES[architecture]().config)


def some(spec, seed=0, n=25, neurons=()):
    """Edges with scores of all sizes and signs, a third without, a third with intervals."""
    rng = np.random.default_rng(seed)
    edges = Graph(spec, tuple(map(parse_node, neurons))).edges()
    chosen = [edges[row] for row in rng.permutation(len(edges))[:n]]
    scores = dict(zip(chosen, sizes(rng, n)))
    return Circuit(
        frozenset(chosen),
        {edge: scores[edge] for row, edge in enumerate(chosen) if row % 3 < 2},
        {edge: (score - 0.1, score + 0.3) for edge, score in list(scores.items())[::3]},
        ATTRS,
    )


def sizes(rng, n):
    return (rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n)).tolist()


def saved(circuit, path, spec, file_format="eap-ig"):
    return json.loads(circuit.save(path, spec, file_format).read_text())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_round_trips_are_equal(architecture, file_format, tmp_path):
    spec = spec_of(architecture)
    for seed in range(5):
        circuit = some(spec, seed)
        path = circuit.save(tmp_path / "circuit.out", spec, file_format)
        assert Circuit.load(path) == Circuit.load(path, spec) == circuit
    empty = Circuit(frozenset())
    assert Circuit.load(empty.save(tmp_path / "empty", spec, file_format)) == empty


@pytest.mark.parametrize("file_format", FORMATS[1:])
def test_neurons_come_back(file_format, tmp_path):
    spec = spec_of("llama grouped")
    circuit = some(spec, n=300, neurons=["neuron 0.3", "neuron 2.5"])
    assert any(edge.receiver.kind == "neuron_in" for edge in circuit.edges)
    assert any(edge.sender.kind == "neuron" for edge in circuit.edges)
    path = circuit.save(tmp_path / "circuit", spec, file_format)
    assert Circuit.load(path, spec) == circuit


def test_the_name_says_the_format(tmp_path, unchecked):
    spec, circuit = spec_of("gpt2"), Circuit.of(["embed -> logits"])
    assert "cfg" in json.loads(circuit.save(tmp_path / "a.json", spec).read_text())
    assert circuit.save(tmp_path / "a.graphml", spec).read_text().startswith("<")
    for name, file_format in (("a.txt", None), ("a.json", "dot")):
        with pytest.raises(
            MechnumError, match=r"no format of circuits .*: name the file \.json or"
        ):
            circuit.save(tmp_path / name, spec, file_format)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.graphml", "a.json"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    spec, path = spec_of("gpt2"), tmp_path / "circuit.json"
    Circuit.of(["embed -> logits"]).save(path, spec)
    before = path.read_text()
    edge = Edge.parse("embed -> mlp_in 1")
    for wrong, message in (
        (Circuit.of(["mlp 2 -> mlp_in 1"]), "is impossible"),
        (Circuit.of(["mlp 7 -> logits"]), "does not exist"),
        (Circuit.of(["attn 0 -> logits"]), "is no edge of a circuit"),
        (Circuit.of(["neuron 0.1 -> logits"]), "no place in an EAP-IG graph"),
        (Circuit(frozenset([edge]), {edge: math.nan}), "the score of embed -> mlp_in 1 is nan"),
        (Circuit(frozenset([edge]), attrs={"share": math.inf}), "attribute 'share'"),
    ):
        with pytest.raises(MechnumError, match=message):
            wrong.save(path, spec)
        assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interval_of_one_pair_is_none(tmp_path):
    edge = Edge.parse("embed -> logits")
    circuit = Circuit(frozenset([edge]), {edge: 1.0}, {edge: (math.nan, math.nan)})
    for file_format in FORMATS:
        path = circuit.save(tmp_path / "one", spec_of("gpt2"), file_format)
        assert Circuit.load(path) == Circuit(frozenset([edge]), {edge: 1.0})


def names_of_eap_ig(n_layers, n_heads, parallel):
    """The slow way: the stream's writers one after the other, and what reads them."""
    stream, edges = ["input"], []
    for layer in range(n_layers):
        heads = [f"a{layer}.h{head}" for head in range(n_heads)]
        edges += [f"{node}->{head}<{x}>" for node in stream for head in heads for x in "qkv"]
        before = stream if parallel else stream + heads
        edges += [f"{node}->m{layer}" for node in before]
        stream = [*stream, *heads, f"m{layer}"]
    return {*stream, "logits"}, {*edges, *(f"{node}->logits" for node in stream)}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_eap_ig_files_have_all_nodes_and_edges_of_that_graph(architecture, tmp_path):
    spec = spec_of(architecture)
    content = saved(some(spec), tmp_path / "circuit.json", spec)
    nodes, edges = names_of_eap_ig(spec.n_layers, spec.n_heads, spec.parallel)
    assert set(content["nodes"]) == nodes
    assert set(content["edges"]) == edges
    assert content["cfg"]["n_layers"] == spec.n_layers
    assert content["cfg"]["n_heads"] == spec.n_heads
    assert content["cfg"]["parallel_attn_mlp"] is spec.parallel
    assert content["cfg"]["d_model"] == spec.d_model
    assert all(isinstance(edge["score"], float) for edge in content["edges"].values())


def test_eap_ig_groups_are_written_for_each_head(tmp_path):
    spec = spec_of("llama grouped")
    assert spec.heads_per_group == 2
    shared, own = Edge.parse("head 0.3 -> k 1.g1"), Edge.parse("mlp 0 -> q 1.0")
    circuit = Circuit(frozenset([shared, own]), {shared: 0.7, own: -2.0})
    content = saved(circuit, tmp_path / "circuit.json", spec)
    inside = {name: edge["score"] for name, edge in content["edges"].items() if edge["in_graph"]}
    assert inside == {"a0.h3->a1.h2<k>": 0.35, "a0.h3->a1.h3<k>": 0.35, "m0->a1.h0<q>": -2.0}
    nodes = {name for name, node in content["nodes"].items() if node["in_graph"]}
    assert nodes == {"a0.h3", "m0", "a1.h0", "a1.h2", "a1.h3", "logits"}


@pytest.mark.parametrize("n_heads", [1, 2, 3, 7])
def test_parts_of_a_groups_score_add_up_to_it_to_the_last_bit(n_heads):
    for score in [0.0, *sizes(np.random.default_rng(0), 2000)]:
        parts = eap_ig._parts(score, n_heads)
        assert math.fsum(parts) == score
        assert parts == pytest.approx([score / n_heads] * n_heads, rel=1e-12)


def eap_ig_file(**changes):
    return {
        "cfg": {"n_layers": 2, "n_heads": 4, "parallel_attn_mlp": False, "d_model": 32},
        "nodes": {"input": {"in_graph": True}, "a1.h0": {"in_graph": True, "score": math.nan}},
        "edges": {
            "input->a1.h0<k>": {"score": 0.5, "in_graph": False},
            "input->a1.h1<k>": {"score": 0.25, "in_graph": True},
            "input->a1.h2<k>": {"score": 4.0, "in_graph": False},
            "m0->m1": {"score": None, "in_graph": True},
            "a0.h0->m0": {"score": -1.0, "in_graph": True},
        },
    } | changes


def test_eap_ig_files_of_others(tmp_path):
    """Each head has its own keys, unless the model says that heads share them."""
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(eap_ig_file()))
    alone = Circuit.load(path)
    assert alone.scores == {
        Edge.parse("embed -> k 1.g1"): 0.25,
        Edge.parse("head 0.0 -> mlp_in 0"): -1.0,
    }
    assert alone.edges == {*alone.scores, Edge.parse("mlp 0 -> mlp_in 1")}
    grouped = Circuit.load(path, spec_of_two_layers())
    assert grouped.scores[Edge.parse("embed -> k 1.g0")] == 0.75
    table = read_scores(path, spec_of_two_layers())
    assert float(table.sel(sender="embed", receiver="k 1.g0")) == 0.75
    assert float(table.sel(sender="embed", receiver="k 1.g1")) == 4
    assert int(table.notnull().sum()) == 3
    assert len(Circuit.from_scores(table, n=3)) == 3


def spec_of_two_layers():
    return spec_from_hf(fixtures.llama(num_hidden_layers=2).config)


def test_older_eap_ig_files_and_nodes_that_are_out(tmp_path):
    path = tmp_path / "graph.json"
    nodes = {"input": True, "a0.h0": False, "m0": True, "m1": True, "logits": False}
    config = {"n_layers": 2, "n_heads": 4, "parallel_attn_mlp": False}
    edges = {name: {"score": 1.0, "in_graph": True} for name in ("a0.h0->m0", "m0->logits")}
    path.write_text(json.dumps({"cfg": config, "nodes": nodes, "edges": edges, "n_pos": None}))
    assert Circuit.load(path).edges == {Edge.parse("mlp 0 -> logits")}


CONFIG = eap_ig_file()["cfg"]
OK = {"score": 1.0, "in_graph": True}
MALFORMED = {
    "empty": "",
    "cut off": json.dumps(eap_ig_file())[:-5],
    "a number": "3",
    "a list": "[]",
    "no edges": json.dumps({key: eap_ig_file()[key] for key in ("cfg", "nodes")}),
    "no graph": json.dumps({"anything": 1}),
    "no heads": json.dumps(eap_ig_file(cfg=CONFIG | {"n_heads": 0})),
    "uneven groups": json.dumps(eap_ig_file(cfg=CONFIG | {"n_key_value_heads": 3})),
    "an edge that is no name": json.dumps(eap_ig_file(edges={"m0=>m1": OK})),
    "an edge to the input": json.dumps(eap_ig_file(edges={"m0->input": OK})),
    "heads without an input": json.dumps(eap_ig_file(edges={"m0->a1.h0": OK})),
    "a layer too many": json.dumps(eap_ig_file(edges={"m0->m2": OK})),
    "a head too many": json.dumps(eap_ig_file(edges={"m0->a1.h4<v>": OK})),
    "an edge backwards": json.dumps(eap_ig_file(edges={"m1->m0": OK})),
    "a score in words": json.dumps(eap_ig_file(edges={"m0->m1": OK | {"score": "high"}})),
    "a score that is no number": json.dumps(
        eap_ig_file(edges={"m0->m1": OK | {"score": math.nan}})
    ),
    "no in_graph": json.dumps(eap_ig_file(edges={"m0->m1": {"score": 1.0}})),
    "positions": json.dumps(eap_ig_file(n_pos=5)),
    "parts of a node": json.dumps(
        eap_ig_file(nodes={"m0": {"in_graph": True, "neurons": [True, False]}})
    ),
    "features of transcoders": json.dumps(
        {
            "metadata": {"slug": "a", "scan": "b", "prompt_tokens": [], "prompt": ""},
            "qParams": {},
            "nodes": [{"node_id": "0_253_1", "feature_type": "cross layer transcoder"}],
            "links": [{"source": "E_2_0", "target": "0_253_1", "weight": 12.9}],
        }
    ),
    "links that are none": json.dumps({"metadata": {}, "nodes": [], "links": [{"source": 1}]}),
    "no metadata": json.dumps({"nodes": [], "links": []}),
    "HTML": "<html><body>404</body></html>",
    "half of GraphML": "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph>",
    "GraphML without a graph": "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'></graphml>",
    "another graph": "\n".join(nx.generate_graphml(nx.path_graph(3))),
    "GraphML with other edges": "\n".join(
        nx.generate_graphml(nx.MultiDiGraph([("a", "b", {"edge": "nothing"})]))
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_in_one_line(case, tmp_path):
    path = tmp_path / "circuit.json"
    path.write_text(MALFORMED[case])
    with pytest.raises(MechnumError, match=r"^[^\n]+: [^\n]+$"):
        Circuit.load(path)


def test_files_that_are_not_there_or_no_text_or_of_another_model(tmp_path):
    with pytest.raises(MechnumError, match=r"cannot read .*none\.json"):
        Circuit.load(tmp_path / "none.json")
    with pytest.raises(MechnumError, match="cannot read"):
        Circuit.load(tmp_path)
    path = tmp_path / "circuit.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MechnumError, match="it is no text"):
        Circuit.load(path)
    large, small = spec_of("llama grouped"), spec_of_two_layers()
    for file_format in FORMATS:
        Circuit.of(["mlp 2 -> logits"]).save(path, large, file_format)
        with pytest.raises(MechnumError, match=r"another model|does not exist"):
            Circuit.load(path, small)
    Circuit.of(["mlp 0 -> logits"]).save(path, spec_from_hf(fixtures.gpt2(n_layer=2).config))
    with pytest.raises(MechnumError, match="another model"):
        Circuit.load(path, small)


def test_neuronpedia_files_hold_what_the_viewer_reads(tmp_path):
    """Required entries, links between nodes that are there, and nodes that it tells apart."""
    spec = spec_of("llama grouped")
    circuit = some(spec, n=200, neurons=["neuron 0.3", "neuron 1.0", "neuron 2.5"])
    path = tmp_path / "My Circuit_2.json"
    content = saved(circuit, path, spec, "neuronpedia")
    assert {"metadata", "qParams", "nodes", "links"} <= set(content)
    metadata = content["metadata"]
    assert (metadata["slug"], metadata["scan"]) == ("my-circuit-2", "some-model")
    assert metadata["prompt"] == "addition"
    assert metadata["generation_settings"] == ATTRS
    # What the viewer would look up for a version or a source of features is not there.
    assert not {"schema_version", "feature_details"} & set(metadata)
    for node in content["nodes"]:
        assert isinstance(node["feature"], int)
        assert isinstance(node["layer"], str)
        assert {"node_id", "ctx_idx", "feature_type", "jsNodeId", "clerp"} <= set(node)
        assert node["ctx_idx"] < len(metadata["prompt_tokens"])
        if node["feature_type"] == "logit":
            assert "(p=" in node["clerp"]
        elif node["feature_type"] != "embedding":
            assert node["clerp"].startswith(("head ", "mlp ", "neuron "))
    identity = Counter(
        (node["layer"], node["feature"], node["ctx_idx"]) for node in content["nodes"]
    )
    assert set(identity.values()) == {1}
    ids = [node["node_id"] for node in content["nodes"]]
    assert len(set(ids)) == len(ids)
    assert content["qParams"]["pinnedIds"] == ids
    ends = [(link["source"], link["target"]) for link in content["links"]]
    assert len(set(ends)) == len(ends)
    assert {one for pair in ends for one in pair} == set(ids)
    assert ids[0].startswith("E_")
    assert content["nodes"][-1]["feature_type"] == "logit"


def test_neuronpedia_links_are_sums_of_edges(tmp_path):
    spec = spec_of("llama grouped")
    query, key, value = map(Edge.parse, ("mlp 0 -> q 1.1", "mlp 0 -> k 1.g0", "mlp 0 -> v 1.g0"))
    circuit = Circuit(frozenset([query, key, value]), {query: 0.5, key: -0.125})
    content = saved(circuit, tmp_path / "circuit.json", spec, "neuronpedia")
    weights = {(link["source"], link["target"]): link["weight"] for link in content["links"]}
    # The value's edge has no score and counts as 1; head 1.0 has no edge to its query.
    assert weights == {("0_4_0", "1_0_0"): 0.875, ("0_4_0", "1_1_0"): 1.375}


def test_graphml_is_read_by_networkx(tmp_path):
    spec = spec_of("llama grouped")
    circuit = Circuit.of(["embed -> v 1.g1", "head 1.3 -> logits", "embed -> neuron_in 2.5"])
    graph = nx.read_graphml(circuit.save(tmp_path / "circuit.graphml", spec))
    assert set(graph) == {"embed", "head 1.2", "head 1.3", "logits", "neuron 2.5"}
    assert nx.shortest_path(graph, "embed", "logits") == ["embed", "head 1.3", "logits"]
    assert graph.nodes["head 1.3"] == {"kind": "head", "layer": 1, "index": 3}


def test_readers():
    spec = spec_of("llama grouped")
    for name, expected in (
        ("k 2.g1", ("head 2.2", "head 2.3")),
        ("q 2.1", ("head 2.1",)),
        ("mlp_in 0", ("mlp 0",)),
        ("neuron_in 0.7", ("neuron 0.7",)),
        ("logits", ("logits",)),
    ):
        assert tuple(map(str, readers(parse_node(name), spec))) == expected
