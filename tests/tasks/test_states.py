"""States and numbers of prompts, in the prompts' own order."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.models.decoder import StateName
from mechnum.tasks import (
    Prompts,
    activations_of,
    modular_addition,
    numbers_of,
    sample_prompts,
    states_of,
)
from tests import fixtures
from tests.helix.nets import P, tiny_model


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny_model()


def prompts_of(rows: list[list[int]], a_at: list[int]) -> Prompts:
    numbers = torch.tensor(rows)
    return Prompts(
        tokens=numbers,
        positions=MappingProxyType(
            {"a": torch.tensor(a_at), "end": torch.full((len(rows),), len(rows[0]) - 1)}
        ),
        answers=numbers[:, 0],
        variables=MappingProxyType({"a": numbers[:, 0], "b": numbers[:, 1]}),
        texts=tuple(map(str, rows)),
        index=torch.arange(len(rows)),
    )


def test_states_are_those_of_one_prompt_at_a_time(model: Model) -> None:
    groups = (
        prompts_of([[1, 2, P], [3, 4, P], [5, 6, P]], [0, 1, 0]),
        prompts_of([[7, 8, 9, P]], [2]),
    )
    states = states_of(model, groups, "a")
    assert states.shape == (4, 4, 32)
    single = [(row, at) for g in groups for row, at in zip(g.tokens, g.positions["a"], strict=True)]
    for place, (row, at) in enumerate(single):
        run = model.run(row[None], keep=("resid_pre", "resid_post"))
        embedding = run["resid_pre", 0][0, int(at)].numpy()
        np.testing.assert_allclose(states[0, place], embedding, atol=1e-5)
        for layer in range(3):
            expected = run["resid_post", layer][0, int(at)].numpy()
            np.testing.assert_allclose(states[layer + 1, place], expected, atol=1e-5)
    last = states_of(model, groups, -1)
    np.testing.assert_array_equal(last, states_of(model, groups, "end"))


@pytest.mark.parametrize("name", ["attn_out", "mlp_hidden", "mlp_out", "z", "k", "v", "q"])
def test_activations_are_those_of_one_prompt_at_a_time(name: StateName) -> None:
    model = mn.wrap(fixtures.llama())
    groups = (
        prompts_of([[10, 12, 5], [13, 14, 5], [15, 16, 5]], [0, 1, 0]),
        prompts_of([[17, 18, 19, 5]], [2]),
    )
    found = activations_of(model, groups, name, "a")
    single = [(row, at) for g in groups for row, at in zip(g.tokens, g.positions["a"], strict=True)]
    for place, (row, at) in enumerate(single):
        run = model.run(row[None], keep=(name,))
        for layer in range(3):
            expected = run[name, layer][0, int(at)].numpy()
            np.testing.assert_allclose(found[layer, place], expected, atol=1e-5)
    with pytest.raises(MechnumError, match="patterns have no common width"):
        activations_of(model, groups, "pattern")


def test_numbers_follow_the_groups() -> None:
    groups = (prompts_of([[1, 2, P], [3, 4, P]], [0, 0]), prompts_of([[7, 8, 9, P]], [0]))
    np.testing.assert_array_equal(
        numbers_of(groups, ("a", "b", "a+b")), [[1, 2, 3], [3, 4, 7], [7, 8, 15]]
    )
    with pytest.raises(MechnumError, match="no number 'c': use a, b"):
        numbers_of(groups, ("a+c",))
    with pytest.raises(MechnumError, match="name at least one"):
        numbers_of(groups, ())


def test_a_sample_is_drawn_once_each_and_keeps_the_order(model: Model) -> None:
    task = modular_addition(P)
    prompts = task.prompts(model)
    sample = sample_prompts(prompts, 50, seed=3)
    index = sample[0].index
    assert len(index) == len(index.unique()) == 50
    assert torch.equal(index, index.sort().values)
    assert torch.equal(sample_prompts(prompts, 50, seed=3)[0].index, index)
    assert not torch.equal(sample_prompts(prompts, 50, seed=4)[0].index, index)
    assert sum(map(len, sample_prompts(prompts, 10**6))) == P * P
    accuracy = task.accuracy(model)
    right = sample_prompts(prompts, 10**6, accuracy=accuracy)
    assert torch.equal(right[0].index, accuracy.correct.nonzero().flatten())


def test_unknown_positions_are_refused(model: Model) -> None:
    groups = (prompts_of([[1, 2, P]], [0]),)
    with pytest.raises(MechnumError, match="no position 'c'"):
        states_of(model, groups, "c")
    with pytest.raises(MechnumError, match="position 3 is outside"):
        states_of(model, groups, 3)
