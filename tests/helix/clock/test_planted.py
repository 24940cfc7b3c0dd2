"""A net whose clock is known: classes, stages, validation and circuit are those that were planted.

With shuffled numbers the classes are gone, and another seed says the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mechnum as mn
from mechnum.helix import Helix
from mechnum.helix.clock import CONTENTS, Fits, head_classes, head_effects
from mechnum.patching.circuit.results import circuit_of
from mechnum.patching.nodes import all_nodes
from mechnum.tasks import sample_prompts

from .planted import P, circles, planted

CLASSES = {"head 0.0": "a,b", "head 0.1": "a,b", "head 1.0": "a+b", "head 1.1": "unclear"}


@pytest.fixture(scope="module")
def model():
    return planted()


@pytest.fixture(scope="module")
def task():
    return mn.tasks.parse(f"modular_addition:{P}")


@pytest.fixture(scope="module", params=[0, pytest.param(7, marks=pytest.mark.slow)])
def clock(model, task, request):
    return mn.trace_clock(
        model, task, n_pairs=60, periods=(P,), n_mixed=0, n_edges=6, seed=request.param
    )


def test_the_net_adds(model, task):
    assert task.accuracy(model).share == 1
    prompts = task.prompts(model)[0]
    z = model.run(prompts.tokens, keep=("z",))
    a, b = prompts.variables["a"].numpy(), prompts.variables["b"].numpy()
    for layer, head, numbers in ((0, 0, a), (0, 1, b), (1, 0, a + b), (1, 1, a)):
        np.testing.assert_allclose(z["z", layer][:, -1, head], circles(numbers), atol=1e-9)


def test_classes_are_the_planted_ones_in_every_resample(clock):
    heads = clock["clock/heads"].to_dataset()
    found = dict(zip(heads["node"].values, heads["class"].values, strict=True))
    assert found == CLASSES
    for node, name in CLASSES.items():
        share = float(heads["class_share"].sel(node=node, class_name=name))
        assert share == 1, node
    for node, name in (("head 0.0", "c_ab"), ("head 0.1", "c_ab"), ("head 1.0", "c_sum")):
        own = heads.sel(node=node)
        assert float(own[name]) == pytest.approx(1, abs=1e-6)
        assert float(own["direct_share"]) == pytest.approx(float(name == "c_sum"), abs=1e-6)
    assert "total effect is not above 0" in str(heads["status"].sel(node="head 1.1").values)
    assert np.isnan(heads["c_ab"].sel(node="head 1.1"))


def test_fits_are_exact_for_pairs_that_they_never_saw(clock):
    r2 = clock["clock/heads/r2"]
    assert r2.sel(node="head 0.0", content="a,b").item() == pytest.approx(1, abs=1e-6)
    assert r2.sel(node="head 1.0", content="a+b").item() == pytest.approx(1, abs=1e-6)
    assert r2.sel(node="head 0.0", content="a+b").item() < 0.2
    assert r2.sel(node="head 1.0", content="a,b").item() < 0.2


def test_the_classes_reach_all_of_the_effect_and_swapped_ones_none(clock):
    validation = clock["clock/validation"].to_dataset().set_index({"set": "set"})
    share = validation["share"].to_series()
    assert share["m=0"] == pytest.approx(1, abs=1e-6)
    assert share["true"] == pytest.approx(1, abs=1e-6)
    assert share["swapped"] < 0.7
    assert share["m=0"] > share["mean"] + 0.2
    assert validation["n_mixed"].sel(set="m=3").item() == 3
    assert "m=4" not in share


def test_the_mlp_builds_the_sum(clock):
    mlps = clock["clock/mlps"].to_dataset()
    assert mlps["stage"].values.tolist() == ["compute", "unclear"]
    assert mlps["direct_share"].values[0] == pytest.approx(0, abs=1e-6)
    assert mlps["helix_share"].values[0] == pytest.approx(1, abs=1e-6)
    assert mlps["status"].values[1].startswith("no gap")
    assert clock["clock/curves/mlps"].attrs["k_for"].startswith('{"0.5": 1')


def test_the_circuit_is_the_planted_one(clock):
    circuit = circuit_of(clock["circuit"].to_dataset())
    planted_edges = [
        "head 0.0 -> mlp_in 0",
        "head 0.1 -> mlp_in 0",
        "mlp 0 -> v 1.g0",
        "head 1.0 -> logits",
    ]
    strongest = sorted(circuit.edges, key=lambda edge: -circuit.scores[edge])
    assert {*planted_edges} <= {str(edge) for edge in strongest}
    for edge in strongest:
        low, high = circuit.intervals[edge]
        assert low <= circuit.scores[edge] <= high
    assert set(map(str, circuit.edges)) - set(planted_edges) <= {
        "embed -> v 0.g0", "embed -> v 0.g1"
    }  # fmt: skip
    assert clock["faithfulness/faithfulness"].item() == pytest.approx(1, abs=1e-6)


def test_shuffled_numbers_have_no_classes(model, task):
    """Prompts under wrong numbers: what a fit says then is as good as the permuted control."""
    pairs = task.pairs(model, 40, seed=3)
    prompts = sample_prompts(task.prompts(model), seed=0)
    wrong = []
    for group in prompts:
        order = np.random.default_rng(5).permutation(len(group))
        variables = {name: values[order] for name, values in group.variables.items()}
        wrong.append(replace(group, variables=variables))
    nodes = all_nodes("head", model.spec)
    right = Fits(prompts, Helix((P,), linear=False))
    for fits, unclear in ((right, 1), (Fits(wrong, right.helix), 4)):
        found, values = head_effects(model, pairs, nodes, fits)
        classes = head_classes(found, n_mixed=0)
        assert (classes["class"] == "unclear").sum() == unclear
        assert values["content"].values.tolist() == [*CONTENTS, "permuted"]
