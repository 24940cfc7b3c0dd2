from __future__ import annotations

import numpy as np
import pytest
import torch

from mechnum import tasks
from mechnum.errors import MechnumError
from tests.tasks.stand_in import Spec, StandIn

# 3+4= and 2+5= with number n as token n, + as 10 and = as 11; answers 7 and 8.
CLEAN = [[3, 10, 4, 11], [2, 10, 5, 11]]
CORRUPT = [[3, 10, 5, 11], [3, 10, 5, 11]]


@pytest.mark.parametrize(
    "kind",
    [
        torch.tensor,
        np.array,
        list,
        lambda ids: torch.tensor(ids, dtype=torch.int32),
        lambda ids: np.array(ids, dtype=np.uint16),
    ],
    ids=["torch", "numpy", "list", "int32", "uint16"],
)
def test_pairs_come_in_the_order_given(kind):
    pairs = tasks.pairs_from_tokens(
        kind(CLEAN),
        kind(CORRUPT),
        kind([7, 7]),
        kind([8, 8]),
        positions={"a": 0, "b": kind([2, 2])},
    )
    (group,) = pairs.groups
    assert group.clean.tokens.tolist() == CLEAN
    assert group.corrupt.tokens.tolist() == CORRUPT
    assert group.clean.tokens.dtype == torch.int64
    assert group.clean.answers.tolist() == [7, 7]
    assert group.corrupt.answers.tolist() == [8, 8]
    for side in (group.clean, group.corrupt):
        assert {name: at.tolist() for name, at in side.positions.items()} == {
            "a": [0, 0],
            "b": [2, 2],
            "end": [3, 3],
        }
    assert (len(pairs), pairs.vary, pairs.seed, pairs.candidates) == (2, "given", None, 2)
    assert dict(pairs.dropped) == {}


def test_prompts_of_several_lengths_are_grouped_not_padded():
    pairs = tasks.pairs_from_tokens(
        [[1, 2, 3], [1, 2], [4, 5, 6]], [[1, 9, 3], [1, 9], [4, 9, 6]], [1, 2, 3], [4, 5, 6]
    )
    short, long = pairs.groups
    assert short.clean.tokens.tolist() == [[1, 2]]
    assert short.index.tolist() == [1]
    assert long.index.tolist() == [0, 2]
    assert long.clean.positions["end"].tolist() == [2, 2]


def test_later_edits_of_the_callers_tensors_change_nothing():
    clean = torch.tensor(CLEAN)
    pairs = tasks.pairs_from_tokens(clean, torch.tensor(CORRUPT), [7, 7], [8, 8])
    clean[0, 0] = 0
    assert pairs.groups[0].clean.tokens.tolist() == CLEAN


def test_different_lengths_are_refused_with_both_token_lists():
    with pytest.raises(MechnumError) as refusal:
        tasks.pairs_from_tokens([[3, 10, 4, 11]], [[1, 3, 10, 4, 11]], [7], [17])
    assert "[3, 10, 4, 11]" in str(refusal.value)
    assert "[1, 3, 10, 4, 11]" in str(refusal.value)


def test_equal_answers_and_equal_prompts_are_refused_with_counts():
    # The pairs (3+4, 2+5) and (3+4, 3+4); (3+4, 3+5) alone is fine.
    with pytest.raises(MechnumError, match=r"2 of 3 pairs have equal answers \(rows 0, 1\)"):
        tasks.pairs_from_tokens(
            [CLEAN[0]] * 3, [CLEAN[0], CLEAN[1], CORRUPT[0]], [7, 7, 7], [7, 7, 8]
        )
    with pytest.raises(MechnumError, match=r"1 of 2 pairs have equal prompts \(rows 1\)"):
        tasks.pairs_from_tokens(CLEAN, [CORRUPT[0], CLEAN[1]], [7, 7], [8, 8])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clean": torch.tensor(CLEAN).float()}, r"clean\[0\] holds float32 values: give integers"),
        ({"clean": torch.tensor(CLEAN) > 3}, r"clean\[0\] holds bool values"),
        ({"clean": np.array(CLEAN) * 1.0}, r"clean\[0\] holds float64 values"),
        ({"answers": torch.tensor([7.0, 7.0])}, "answers holds float32 values"),
        ({"clean": torch.tensor(CLEAN[0])}, r"clean has shape \(4,\): .* \[pair, pos\]"),
        ({"clean": [[], []]}, r"clean\[0\] has no tokens"),
        ({"clean": [[3, 10, -4, 11], CLEAN[1]]}, r"clean\[0\] has the token id -4"),
        ({"corrupt_answers": [8, -1]}, "corrupt_answers has the token id -1"),
        ({"corrupt": CORRUPT[:1]}, "2 clean prompts have 1 corrupt prompts"),
        ({"answers": [7]}, "2 clean prompts have 1 answers"),
        ({"corrupt_answers": [7, 8, 9]}, "2 clean prompts have 3 corrupt answers"),
        ({"clean": [], "corrupt": [], "answers": [], "corrupt_answers": []}, "there are no pairs"),
        ({"positions": {"a": 4}}, "position 4 of 'a' is outside a prompt of 4 tokens"),
        ({"positions": {"a": -1}}, "position -1 of 'a' is outside"),
        ({"positions": {"a": [0]}}, r"positions\['a'\] has 1 entries for 2 pairs"),
        ({"positions": {"end": 2}}, "'end' is the last token"),
        ({"model": StandIn(spec=Spec(d_vocab=11))}, "prompt token id 11 is outside"),
        ({"model": StandIn(spec=Spec(d_vocab_out=8))}, "answer token id 8 is outside"),
        ({"model": StandIn(spec=Spec(n_ctx=3))}, "4 tokens are too long for stand-in"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {
        "clean": CLEAN,
        "corrupt": CORRUPT,
        "answers": [7, 7],
        "corrupt_answers": [8, 8],
    }
    with pytest.raises(MechnumError, match=message):
        tasks.pairs_from_tokens(**(arguments | change))


def test_fitting_model_is_accepted():
    tasks.pairs_from_tokens(CLEAN, CORRUPT, [7, 7], [8, 8], model=StandIn())


def test_positions_may_be_the_end():
    pairs = tasks.pairs_from_tokens(CLEAN, CORRUPT, [7, 7], [8, 8], {"end": 3, "op": 1})
    assert set(pairs.groups[0].clean.positions) == {"end", "op"}
