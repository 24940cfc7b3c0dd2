"""Neurons by name, and the rows of a table that are theirs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.neurons.chosen import at_nodes, chosen_neurons
from mechnum.patching.nodes import Node
from tests import fixtures


@pytest.fixture(scope="module")
def model():
    return mn.wrap(fixtures.llama(), name="tiny")


def test_names_and_nodes_in_their_order(model):
    expected = [Node("neuron", 2, 5), Node("neuron", 0, 63)]
    assert chosen_neurons(model, "neuron 2.5, neuron 0.63") == expected
    assert chosen_neurons(model, ["neuron 2.5", "neuron 0.63"]) == expected
    assert chosen_neurons(model, expected) == expected
    assert chosen_neurons(model, ["blocks.2.mlp.hook_post[5]"]) == expected[:1]
    assert len(chosen_neurons(model, "neuron 1.0-9")) == 10
    assert len(chosen_neurons(model, "neurons")) == 3 * 64


@pytest.mark.parametrize(
    ("neurons", "message"),
    [
        ([], "no neurons were named"),
        ("head 1.2", "head 1.2 is no single neuron"),
        (["mlp 1"], "mlp 1 is no single neuron"),
        (["neuron_in 1.3"], "neuron_in 1.3 is no single neuron"),
        ([{"neuron 0.1", "neuron 0.2"}], r"neuron 0.1 \+ neuron 0.2 is no single neuron"),
        ([set()], "an empty set is no single neuron"),
        (["neuron 0.1", "neuron 0.1"], "neuron 0.1 is there twice"),
        ("neuron 3.1", "neuron 3.1 does not exist: the model has layers 0 to 2"),
        ("neuron 0.64", "neuron 0.64 does not exist: a layer has neurons 0 to 63"),
        ("cell 0.1", "names no node"),
    ],
)
def test_what_is_no_neuron_is_refused(model, neurons, message):
    with pytest.raises(MechnumError, match=message):
        chosen_neurons(model, neurons)


def test_rows_of_a_table(model):
    values = np.arange(2 * 4).reshape(2, 4)
    table = xr.Dataset(
        {"x": (("layer", "neuron"), values)}, coords={"layer": [0, 2], "neuron": range(4)}
    )
    found = at_nodes(table, [Node("neuron", 2, 1), Node("neuron", 0, 3)])
    assert found["x"].dims == ("node",)
    assert found["x"].values.tolist() == [5, 3]
    assert found["node"].values.tolist() == ["neuron 2.1", "neuron 0.3"]
    assert found["layer"].values.tolist() == [2, 0]
    with pytest.raises(MechnumError, match=r"no neuron 1\.0: it has neurons 0 to 3 of"):
        at_nodes(table, [Node("neuron", 0, 0), Node("neuron", 1, 0)])
    with pytest.raises(MechnumError, match=r"no neuron 2\.9: it has neurons 0 to 3"):
        at_nodes(table, [Node("neuron", 2, 9)])
