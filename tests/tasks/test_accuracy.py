from __future__ import annotations

import math

import pytest
import torch

from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.progress import reported_to
from mechnum.tasks import accuracy as accuracy_module
from tests.tasks.small_tokenizers import digit_level, word_level
from tests.tasks.stand_in import Spec, StandIn, adds


def test_model_that_adds_is_always_right():
    measured = tasks.addition(range(10)).accuracy(adds(word_level()))
    assert measured.share == 1.0
    assert len(measured) == 100
    assert measured.correct.all()
    assert (measured.errors == 0).all()
    assert measured.error_counts() == {}
    assert measured.texts[23] == "2+3="
    assert measured.variables["a"].tolist() == [row // 10 for row in range(100)]


def test_errors_are_predicted_minus_right_number():
    # Ten too many for a = 3, one too few for a = 4.
    model = adds(word_level(), lambda a, b: a + b + {3: 10, 4: -1}.get(a, 0))
    measured = tasks.addition(range(1, 11)).accuracy(model)
    assert measured.share == 0.8
    assert measured.error_counts() == {-1: 10, 10: 10}
    row = measured.texts.index("3+5=")
    assert (measured.predicted_numbers[row], measured.errors[row]) == (18, 10)
    assert not measured.correct[row]


def test_answers_that_are_no_numbers_are_nan_and_wrong():
    tokenizer = word_level()
    model = StandIn(tokenizer, answer=lambda tokens: tokenizer.convert_tokens_to_ids("+"))
    measured = tasks.addition(range(5)).accuracy(model)
    assert measured.share == 0.0
    assert all(math.isnan(error) for error in measured.errors.tolist())
    assert measured.error_counts() == {}


@pytest.mark.parametrize(("token", "number"), [("007", None), ("7", 7), ("-7", -7), ("٣", None)])
def test_only_numbers_as_an_answer_writes_them_count(token, number):
    tokenizer = word_level()
    tokenizer.add_tokens([token])
    model = StandIn(tokenizer, answer=lambda tokens: tokenizer.convert_tokens_to_ids(token))
    measured = tasks.addition([1]).accuracy(model)
    (predicted,) = measured.predicted_numbers.tolist()
    assert math.isnan(predicted) if number is None else predicted == number


def test_last_mode_compares_the_first_piece_and_names_no_numbers():
    tokenizer = digit_level()
    first_digit = tokenizer.convert_tokens_to_ids("4")
    model = StandIn(tokenizer, answer=lambda tokens: first_digit)
    measured = tasks.addition([20, 25, 30], digits="last").accuracy(model)
    # 20+20, 20+25 and 25+20 start with a 4.
    assert measured.correct.sum() == 3
    assert measured.predicted_numbers.isnan().all()


def test_order_is_the_tasks_whatever_the_lengths():
    model = StandIn(digit_level())
    measured = tasks.addition([3, 45, 6], digits="last").accuracy(model)
    assert measured.texts[:4] == ("3+3=", "3+45=", "3+6=", "45+3=")
    assert measured.variables["b"].tolist() == [3, 45, 6] * 3


@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_change_nothing(monkeypatch, size):
    monkeypatch.setattr(accuracy_module, "_BATCH_PROMPTS", size)
    model = adds(word_level(), lambda a, b: a * b % 7)
    measured = tasks.addition(range(8)).accuracy(model)
    expected = [(a * b % 7) - (a + b) for a in range(8) for b in range(8)]
    assert measured.errors.tolist() == expected


def test_batches_are_small_where_the_vocabulary_is_large(monkeypatch):
    monkeypatch.setattr(accuracy_module, "_BATCH_LOGITS", 900)
    seen = []

    class Counting(StandIn):
        def logits(self, tokens, token_ids=None):
            seen.append(len(tokens))
            return super().logits(tokens)

    tasks.addition(range(3)).accuracy(Counting(word_level()))
    assert seen == [3, 3, 3]


def test_progress_is_told():
    told = []
    with reported_to(lambda what, done, total: told.append((done, total))):
        tasks.addition(range(3)).accuracy(adds(word_level()))
    assert told[-1][0] == told[-1][1]


def test_logits_that_are_not_numbers_are_refused():
    class Broken(StandIn):
        def logits(self, tokens, token_ids=None):
            return torch.full((len(tokens), self.spec.d_vocab_out), float("nan"))

    with pytest.raises(MechnumError, match="stand-in gives logits that are not numbers"):
        tasks.addition(range(3)).accuracy(Broken(word_level()))


def test_modular_addition():
    spec = Spec("native", d_vocab=8, d_vocab_out=7, n_ctx=3)
    right = StandIn(spec=spec, answer=lambda tokens: (tokens[0] + tokens[1]) % 7)
    assert tasks.modular_addition(7).accuracy(right).share == 1.0
    zero = tasks.modular_addition(7).accuracy(StandIn(spec=spec))
    assert zero.share == pytest.approx(1 / 7)
    assert zero.error_counts() == {-answer: 7 for answer in range(6, 0, -1)}


def test_output_tokens_beyond_p_are_no_numbers():
    model = StandIn(spec=Spec("native", d_vocab=8, d_vocab_out=8, n_ctx=3), answer=lambda t: 7)
    assert tasks.modular_addition(7).accuracy(model).predicted_numbers.isnan().all()
