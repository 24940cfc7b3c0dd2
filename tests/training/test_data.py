from __future__ import annotations

import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.training.data import addition, modular_addition, split


def test_addition_rows_are_all_sums():
    data = addition(7, plus=13, equals=14)
    rows = {
        (*row, answer)
        for *row, answer in zip(*data.tokens.T.tolist(), data.answers.tolist(), strict=True)
    }
    assert rows == {(a, 13, b, 14, a + b) for a in range(7) for b in range(7)}
    assert len(data.tokens) == 49


def test_modular_addition_rows_are_all_sums():
    data = modular_addition(7)
    rows = {
        (*row, answer)
        for *row, answer in zip(*data.tokens.T.tolist(), data.answers.tolist(), strict=True)
    }
    assert rows == {(a, b, 7, (a + b) % 7) for a in range(7) for b in range(7)}


def test_modular_addition_without_an_equals_sign():
    data, bare = modular_addition(7), modular_addition(7, equals=False)
    assert torch.equal(bare.tokens, data.tokens[:, :2])
    assert torch.equal(bare.answers, data.answers)
    assert torch.equal(bare.group, data.group)


@pytest.mark.parametrize("seed", range(5))
def test_split_keeps_mirrored_sums_together(seed):
    data = addition(20, plus=39, equals=40)
    parts = split(data, 0.8, seed)
    sides = [
        {tuple(sorted(pair)) for pair in data.tokens[rows][:, [0, 2]].tolist()} for rows in parts
    ]
    assert sides[0].isdisjoint(sides[1])
    assert sorted(torch.cat(parts).tolist()) == list(range(400))
    assert len(sides[0]) == round(0.8 * 210)


def test_split_of_ordered_pairs_tears_mirrored_sums_apart():
    data = modular_addition(11)
    train, heldout = (
        {tuple(pair) for pair in data.tokens[rows][:, :2].tolist()} for rows in split(data, 0.5, 0)
    )
    assert any((b, a) in heldout for a, b in train)
    assert len(train) == round(0.5 * 121)


def test_split_depends_on_the_seed_alone():
    data = modular_addition(11)
    first, again, other = (split(data, 0.3, seed) for seed in (0, 0, 1))
    assert torch.equal(first.train, again.train)
    assert torch.equal(first.heldout, again.heldout)
    assert not torch.equal(first.train, other.train)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5, 1e-9])
def test_split_without_two_parts_is_refused(fraction):
    with pytest.raises(MechnumError, match="choose a share between 0 and 1"):
        split(modular_addition(5), fraction, 0)
