"""Error signatures: kinds, counts and carries of answers that are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.tasks import error_kinds, error_signature
from mechnum.tasks.signatures import KINDS
from tests.tasks.small_tokenizers import digit_level, word_level
from tests.tasks.stand_in import Spec, StandIn, adds

OFF = {1: -10, 2: 10, 3: 50, 4: 3, 5: -8, 6: 100}


@pytest.fixture(scope="module")
def accuracy():
    """a decides the error; a = 7 answers '+'."""
    tokenizer = word_level(range(300))

    def answer(tokens):
        a, b = (int(tokenizer.decode([tokens[-k]])) for k in (4, 2))
        word = "+" if a == 7 else str(a + b + OFF.get(a, 0))
        return tokenizer.convert_tokens_to_ids(word)

    return tasks.addition(range(40), max_sum=60).accuracy(StandIn(tokenizer, answer=answer))


def test_kinds_are_shares_of_the_answers_that_they_apply_to(accuracy):
    found = error_signature(accuracy)
    a = accuracy.variables["a"].numpy()
    b = accuracy.variables["b"].numpy()
    # 1 − 10 is no number that the tokenizer has where the sum is below 10.
    off = np.array([OFF.get(x, 0) for x in a], dtype=float)
    said = a + b + off
    off[(a == 7) | (said < 0)] = np.nan
    wrong = (off != 0) | np.isnan(off)
    numeric = wrong & np.isfinite(off)
    expected = {
        "−10": (off == -10)[numeric],
        "+10": (off == 10)[numeric],
        "multiple of 10": np.isin(off, [-10, 10, 50, 100])[numeric],
        "multiple of 50": np.isin(off, [50, 100])[numeric],
        "even": np.isin(off, [-10, 10, 50, 100, -8])[numeric],
        "below 6": (off == 3)[numeric],
        "no number": np.isnan(off)[wrong],
        "parity right, all answers": (off % 2 == 0)[np.isfinite(off)],
        "units digit right, all answers": (off % 10 == 0)[np.isfinite(off)],
    }
    assert set(expected) == set(KINDS)
    for kind, members in expected.items():
        own = found.sel(kind=kind)
        assert (float(own["share"]), int(own["n"])) == (pytest.approx(members.mean()), len(members))
        assert float(own["low"]) <= float(own["share"]) <= float(own["high"])
    assert found.attrs == {
        "n_prompts": len(a),
        "n_wrong": int(wrong.sum()),
        "n_no_number": int(np.isnan(off).sum()),
    }
    assert dict(zip(found["error"].values.tolist(), found["count"].values.tolist())) == {
        int(value): int((off == value).sum()) for value in np.unique(off[numeric])
    }


def test_intervals_are_bootstraps_over_prompts(accuracy):
    """Close to the normal approximation for a share of many."""
    own = error_signature(accuracy, seed=1).sel(kind="even")
    share, n = float(own["share"]), int(own["n"])
    half = 1.96 * np.sqrt(share * (1 - share) / n)
    assert float(own["high"] - own["low"]) / 2 == pytest.approx(half, rel=0.15)
    assert error_signature(accuracy, seed=1).equals(error_signature(accuracy, seed=1))


def test_carries_are_pearsons_test_written_out(accuracy):
    found = error_signature(accuracy)
    a, b = (accuracy.variables[name].numpy() for name in "ab")
    wrong = ~accuracy.correct.numpy()
    for threshold in (9, 10):
        carried = a % 10 + b % 10 > threshold
        own = found.sel(carry=threshold)
        assert float(own["carry_wrong"]) == pytest.approx(carried[wrong].mean())
        assert float(own["carry_all"]) == pytest.approx(carried.mean())
        cells = np.array([[(w & c).sum() for c in (carried, ~carried)] for w in (wrong, ~wrong)])
        expected = np.outer(cells.sum(1), cells.sum(0)) / cells.sum()
        statistic = ((cells - expected) ** 2 / expected).sum()
        assert float(own["chi2"]) == pytest.approx(statistic)
        assert float(own["chi2_p"]) == pytest.approx(chi2.sf(statistic, 1))


def test_errors_at_carries_alone_are_found():
    model = adds(word_level(), lambda a, b: a + b - 10 * (a % 10 + b % 10 > 9))
    found = error_signature(tasks.addition(range(30)).accuracy(model)).sel(carry=9)
    assert float(found["carry_wrong"]) == 1
    assert float(found["chi2_p"]) < 1e-6


def test_a_model_without_errors_has_an_empty_signature():
    found = error_signature(tasks.addition(range(10)).accuracy(adds(word_level())))
    assert np.isnan(found["share"].sel(kind="−10"))
    assert int(found["n"].sel(kind="−10")) == 0
    assert float(found["share"].sel(kind="parity right, all answers")) == 1
    assert found.sizes["error"] == 0
    assert np.isnan(found["chi2_p"]).all()
    assert np.isnan(found["carry_wrong"]).all()


def test_modular_addition_carries_nothing():
    spec = Spec("native", d_vocab=8, d_vocab_out=7, n_ctx=3)
    model = StandIn(spec=spec, answer=lambda tokens: 0)
    assert "carry" not in error_signature(tasks.modular_addition(7).accuracy(model)).coords


def test_first_pieces_are_refused():
    tokenizer = digit_level()
    four = tokenizer.convert_tokens_to_ids("4")
    model = StandIn(tokenizer, answer=lambda tokens: four)
    accuracy = tasks.addition([20, 25], digits="last").accuracy(model)
    with pytest.raises(MechnumError, match="first pieces"):
        error_kinds(accuracy)


def test_tokens_are_judged_as_the_model_is():
    model = adds(word_level(), lambda a, b: a + b + (a == 3))
    task = tasks.addition(range(6))
    whole = task.accuracy(model)
    prompts = tasks.sample_prompts(task.prompts(model), 9, seed=2)
    rows = [int(row) for group in prompts for row in group.index]
    judged = task.judged(model, prompts, whole.predicted[rows])
    assert judged.errors.tolist() == whole.errors[rows].tolist()
    assert judged.texts == whole.select(torch.tensor(rows)).texts
