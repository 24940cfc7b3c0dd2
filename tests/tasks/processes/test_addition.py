"""The carry automaton against all sums of a few digits, and against the digits of its beliefs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.tasks import processes as P


def columns(base: int, n: int):
    """Every sum of n columns: operand digits, result digits and carries, lowest digit first."""
    for digits in itertools.product(range(base), repeat=2 * n):
        pairs = list(zip(digits[::2], digits[1::2]))
        carries, results = [0], []
        first = sum(a * base**i for i, (a, _) in enumerate(pairs))
        second = sum(b * base**i for i, (_, b) in enumerate(pairs))
        for i in range(n):
            results.append((first + second) // base**i % base)
            low = base ** (i + 1)
            carries.append((first % low + second % low) // low)
        yield pairs, results, carries


@pytest.mark.parametrize("base", [3, 10])
def test_beliefs_are_the_shares_among_all_sums(base):
    """After each token of strings that hide some digits: which sums could it be, and what next?"""
    n = 3 if base == 3 else 2
    hidden = 0.25
    process = P.carry(base, hidden)
    question = base**2
    unknown = question + base
    rng = np.random.default_rng(0)
    everything = list(columns(base, n))
    for index in rng.choice(len(everything), 12, replace=False):
        pairs, results, _ = everything[index]
        masks = rng.random(n) < 0.5
        string = []
        for (a, b), result, mask in zip(pairs, results, masks):
            string += [unknown if mask else a * base + b, question + result]
        beliefs = process.beliefs([string])[0] @ P.carry_readout(base)
        fitting = everything
        for column in range(n):
            if not masks[column]:
                fitting = [own for own in fitting if own[0][column] == pairs[column]]
            # After the digits the belief is of the carry that goes out.
            share = np.mean([own[2][column + 1] for own in fitting])
            assert beliefs[2 * column + 1, 1] == pytest.approx(share, abs=1e-12)
            following = process.next_token(process.beliefs([string[: 2 * column + 1]])[0, -1])
            counts = np.bincount([own[1][column] for own in fitting], minlength=base)
            np.testing.assert_allclose(
                following[question : question + base], counts / len(fitting), atol=1e-12
            )
            fitting = [own for own in fitting if own[1][column] == results[column]]
            share = np.mean([own[2][column + 1] for own in fitting])
            assert beliefs[2 * column + 2, 1] == pytest.approx(share, abs=1e-12)


def test_without_hidden_digits_the_carry_is_known():
    process = P.carry()
    assert process.n_tokens == 110
    beliefs = process.beliefs(process.sample(50, 12, seed=1)) @ P.carry_readout()
    np.testing.assert_allclose(np.sort(beliefs, axis=-1)[..., 1], 1)


def test_hidden_columns_write_the_belief_in_digits():
    """After "?" and "=c" the belief η becomes (9 − c + η) / 10."""
    process = P.carry(hidden=0.5)
    results = [3, 7, 0, 9]
    string = [token for c in results for token in (110, 100 + c)]
    expected = 0.0
    for c in results:
        expected = (9 - c + expected) / 10
    found = process.beliefs([string])[0, -1] @ P.carry_readout()
    assert found[1] == pytest.approx(expected, abs=1e-14)
    assert expected == pytest.approx(0.0926)


def test_impossible_automata_are_refused():
    for arguments in ({"base": 1}, {"base": 1000}, {"hidden": 1.5}, {"carry_in": -0.1}):
        with pytest.raises(MechnumError):
            P.carry(**arguments)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("numbers", ["10.5", "nan", "inf", "1e3", "1e300"])
def test_bases_that_are_none_are_refused_by_name(numbers):
    with pytest.raises(MechnumError, match="give a whole number from 2 to 16"):
        P.find_process(f"carry:{numbers}")


@pytest.mark.parametrize("base", [2, 3, 10])
def test_column_addition_is_known_by_its_states(base):
    assert P.carry_base(P.carry(base, 0.3)) == base
    renamed = P.from_matrices(P.carry(base).matrices)
    assert P.carry_base(renamed) is None
    assert P.carry_base(P.mess3()) is None
