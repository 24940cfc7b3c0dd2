from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.tasks import pairs_from_tokens
from mechnum.tasks.pairs import PairGroup
from tests.tasks.small_tokenizers import digit_level, gpt2_like, word_level
from tests.tasks.stand_in import Spec, StandIn, adds

WRONG = "answered wrong"


def drawn(pairs):
    """(clean a, clean b, corrupt a, corrupt b) in the order of drawing."""
    rows = {}
    for group in pairs.groups:
        sides = [
            (side.variables["a"], side.variables["b"]) for side in (group.clean, group.corrupt)
        ]
        for row, place in enumerate(group.index.tolist()):
            rows[place] = tuple(int(column[row]) for side in sides for column in side)
    return [rows[place] for place in sorted(rows)]


def by_enumeration(task, model, vary, correct_only=False):
    """The slow way: every ordered pair of prompts, one by one."""
    prompts = [(group, row) for group in task.prompts(model) for row in range(len(group))]
    right = task.accuracy(model).correct
    counts, fit = Counter(), set()
    for (g, i), (h, j) in product(prompts, prompts):
        kept = {"a": "b", "b": "a", "any": None}[vary]
        if kept is not None and g.variables[kept][i] != h.variables[kept][j]:
            continue
        counts["candidates"] += 1
        if correct_only and not (right[g.index[i]] and right[h.index[j]]):
            counts[WRONG] += 1
        elif g.tokens.shape[1] != h.tokens.shape[1]:
            counts["different token count"] += 1
        elif any(g.positions[name][i] != h.positions[name][j] for name in g.positions):
            counts["different positions"] += 1
        elif torch.equal(g.tokens[i], h.tokens[j]):
            counts["clean equals corrupt"] += 1
        elif g.variables["answer"][i] == h.variables["answer"][j]:
            counts["same answer"] += 1
        elif g.answers[i] == h.answers[j]:
            counts["same first answer token"] += 1
        else:
            fit.add(tuple(int(p.variables[v][r]) for p, r in ((g, i), (h, j)) for v in ("a", "b")))
    return counts, fit


CASES = {
    "single": (
        tasks.addition(range(6), max_sum=7),
        adds(word_level(), lambda a, b: a + b + (a == 3)),
    ),
    "pieces": (
        tasks.addition([3, 7, 12, 45, 48], digits="last"),
        StandIn(digit_level(), answer=lambda tokens: digit_level_id("5")),
    ),
}


def digit_level_id(digit):
    return digit_level().convert_tokens_to_ids(digit)


@pytest.mark.parametrize("vary", ["a", "b", "any"])
@pytest.mark.parametrize("correct_only", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_counts_and_pairs_equal_the_enumeration(case, vary, correct_only):
    task, model = CASES[case]
    counts, fit = by_enumeration(task, model, vary, correct_only)
    if not fit:
        with pytest.raises(MechnumError, match=r"none of the \d+ pairs .* can be used"):
            task.pairs(model, 1, vary, correct_only=correct_only)
        return
    pairs = task.pairs(model, len(fit), vary, correct_only=correct_only)
    # As many as exist: each of them once.
    assert set(drawn(pairs)) == fit
    assert len(pairs) == len(fit) == len(set(drawn(pairs)))
    assert pairs.candidates == counts["candidates"]
    assert {why: n for why, n in pairs.dropped.items() if n} == {
        why: n for why, n in counts.items() if why != "candidates"
    }
    assert sum(pairs.dropped.values()) + len(fit) == pairs.candidates
    with pytest.raises(MechnumError, match=f"only {len(fit)} of the {len(fit) + 1} pairs"):
        task.pairs(model, len(fit) + 1, vary, correct_only=correct_only)


@pytest.mark.slow
def test_share_of_equal_answers_among_all_pairs_is_known():
    pairs = tasks.addition(range(100)).pairs(StandIn(word_level()), 10, "any", correct_only=False)
    assert pairs.candidates == 10**8
    assert pairs.dropped["clean equals corrupt"] + pairs.dropped["same answer"] == 666_700
    assert pairs.dropped_shares["clean equals corrupt"] == 1e-4


def test_every_pair_is_equally_likely():
    task, model = tasks.addition(range(3)), adds(word_level())
    counts, measured = Counter(), task.accuracy(model)
    for seed in range(200):
        counts.update(drawn(task.pairs(model, 6, "any", seed=seed, accuracy=measured)))
    _, fit = by_enumeration(task, model, "any")
    assert counts.keys() == fit
    expected = 200 * 6 / len(fit)
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    # Mean 61, standard deviation about 10 (less, since the six are drawn without replacement).
    assert chi_square < 100


@pytest.mark.parametrize("vary", ["a", "b", "any"])
def test_sides_have_equal_layout_and_different_answers(vary):
    model = StandIn(digit_level())
    task = tasks.addition([3, 9, 12, 45, 101], digits="last")
    pairs = task.pairs(model, 12, vary, correct_only=False)
    assert len(pairs.groups) > 1
    assert sorted(torch.cat([group.index for group in pairs.groups]).tolist()) == list(range(12))
    for group in pairs.groups:
        assert group.clean.tokens.shape == group.corrupt.tokens.shape
        for name, positions in group.clean.positions.items():
            assert torch.equal(positions, group.corrupt.positions[name])
        assert (group.clean.answers != group.corrupt.answers).all()
        for name in {"a": "b", "b": "a", "any": ""}[vary]:
            assert torch.equal(group.clean.variables[name], group.corrupt.variables[name])


def test_only_correct_prompts_are_used():
    model = adds(word_level(), lambda a, b: a + b + (a % 2))
    task = tasks.addition(range(10))
    pairs = task.pairs(model, 50, "a")
    assert all(a % 2 == 0 and corrupt_a % 2 == 0 for a, _, corrupt_a, _ in drawn(pairs))
    assert pairs.dropped[WRONG] == 10 * (10 * 10 - 5 * 5)
    everything = task.pairs(model, 50, "a", correct_only=False)
    assert everything.dropped[WRONG] == 0


def test_accuracy_that_is_there_is_not_measured_again():
    calls = []

    class Counting(StandIn):
        def logits(self, tokens, token_ids=None):
            calls.append(len(tokens))
            return adds(self.tokenizer).logits(tokens)

    model, task = Counting(word_level()), tasks.addition(range(5))
    measured = task.accuracy(model)
    again = task.pairs(model, 5, "a", accuracy=measured)
    assert sum(calls) == 25
    assert again.fingerprint == task.pairs(model, 5, "a").fingerprint
    with pytest.raises(MechnumError, match="correct_only is False"):
        task.pairs(model, 5, "a", correct_only=False, accuracy=measured)
    with pytest.raises(MechnumError, match="accuracy given is of 25 prompts, but addition has 36"):
        tasks.addition(range(6)).pairs(model, 5, "a", accuracy=measured)


def test_model_that_is_always_wrong_leaves_nothing():
    model = StandIn(word_level())
    with pytest.raises(MechnumError, match="answers 0 of 25 prompts of addition correctly"):
        tasks.addition(range(5)).pairs(model, 1, "a")


def test_same_seed_same_pairs_and_no_global_generator():
    task, model = tasks.addition(range(10)), adds(word_level())
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    first, again, other = (task.pairs(model, 20, "a", seed=seed) for seed in (3, 3, 4))
    assert drawn(first) == drawn(again) != drawn(other)
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.seed == 3
    after = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    assert before == after


def test_fingerprint_is_the_same_in_every_run():
    pairs = tasks.pairs_from_tokens([[1, 2, 3]], [[1, 4, 3]], [5], [6])
    assert pairs.fingerprint == "d398e44ca2e4"


@pytest.mark.parametrize("vary", ["a", "b"])
def test_single_number_has_nothing_to_vary(vary):
    with pytest.raises(MechnumError, match=r"none of the 1 pairs .*dropped: 1 clean equals"):
        tasks.addition([7]).pairs(adds(word_level()), 1, vary)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "0 pairs cannot be drawn"),
        ({"n": -2}, "-2 pairs cannot be drawn"),
        ({"n": 1, "seed": -1}, "the seed -1 is negative"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(MechnumError, match=message):
        tasks.addition(range(5)).pairs(adds(word_level()), **arguments)


def test_modular_addition_pairs():
    spec = Spec("native", d_vocab=8, d_vocab_out=7, n_ctx=3)
    model = StandIn(spec=spec, answer=lambda tokens: (tokens[0] + tokens[1]) % 7)
    pairs = tasks.modular_addition(7).pairs(model, 7 * 7 * 6, "a")
    assert pairs.task == "modular_addition:7"
    assert {(a, b, c) for a, b, c, _ in drawn(pairs)} == {
        (a, b, c) for a, b, c in product(range(7), repeat=3) if a != c
    }


def test_first_answer_tokens_differ_where_answers_have_several_pieces():
    model = StandIn(gpt2_like(), Spec(d_vocab=2000, d_vocab_out=2000))
    # 1040 to 1044 all start with the piece 1.
    task = tasks.addition([520, 521, 522], digits="last")
    with pytest.raises(MechnumError, match="same first answer token"):
        task.pairs(model, 1, "any", correct_only=False)


def test_sides_that_do_not_match_cannot_be_grouped():
    groups = tasks.addition([3, 4, 12], digits="last").prompts(StandIn(digit_level()))
    short, long = groups[0], groups[1]
    rows = torch.arange(1)
    with pytest.raises(MechnumError, match=r"shape \(1, 4\) cannot be paired with .* \(1, 5\)"):
        PairGroup(short.select(rows), long.select(rows), rows)
    left, right = long.select(torch.tensor([0])), long.select(torch.tensor([2]))
    assert (left.texts, right.texts) == (("3+12=",), ("12+3=",))
    with pytest.raises(MechnumError, match="operands at different positions"):
        PairGroup(left, right, rows)
    with pytest.raises(MechnumError, match="1 of 1 pairs have equal answers"):
        PairGroup(left, left, rows)


def test_halves_are_disjoint_and_together_all():
    clean, corrupt = [[0, 10, 3 + k] for k in range(10)], [[0, 11, 3 + k] for k in range(10)]
    clean[4:6] = [[0, 1, 10, 3], [0, 1, 12, 3]]
    corrupt[4:6] = [[0, 1, 11, 3], [0, 1, 13, 3]]
    pairs = pairs_from_tokens(clean, corrupt, list(range(10)), list(range(20, 30)))
    first, second = pairs.split(0.3, seed=1)
    assert (len(first), len(second)) == (3, 7)
    answers = [
        sorted(int(a) for group in part.groups for a in group.clean.answers)
        for part in (first, second)
    ]
    assert sorted(answers[0] + answers[1]) == list(range(10))
    for part in (first, second):
        index = sorted(int(i) for group in part.groups for i in group.index)
        assert index == list(range(len(part)))
        # The order of the pairs stays.
        in_order = {
            int(i): int(a)
            for group in part.groups
            for i, a in zip(group.index, group.clean.answers, strict=True)
        }
        assert list(dict(sorted(in_order.items())).values()) == sorted(in_order.values())
    assert len({pairs.fingerprint, first.fingerprint, second.fingerprint}) == 3
    again, _ = pairs.split(0.3, seed=1)
    assert again.fingerprint == first.fingerprint


def test_splits_and_selections_that_are_none_are_refused():
    pairs = pairs_from_tokens([[0, 1], [0, 2]], [[0, 3], [0, 4]], [1, 2], [3, 4])
    with pytest.raises(MechnumError, match="both parts need one"):
        pairs.split(0.1)
    with pytest.raises(MechnumError, match="pairs 0 to 1"):
        pairs.select([2])
    with pytest.raises(MechnumError, match="give each once"):
        pairs.select([1, 1])
