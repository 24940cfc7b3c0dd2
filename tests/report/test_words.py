from __future__ import annotations

import pytest

from mechnum.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.314, "2.31"),
        (0.0, "0"),
        (-0.25, "−0.250"),
        (12345, "12,345"),
        (12345.6, "12,346"),
        (3.8e-6, "3.80e−6"),
        (100.0, "100"),
        (float("nan"), "not available"),
        (None, "not available"),
    ],
)
def test_number(value, text):
    assert words.number(value) == text


def test_signed_whole_number_has_no_decimals():
    assert words.number(-10, sign=True) == "−10"
    assert words.number(1, sign=True) == "+1"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.9942, "99.4 %"),
        (0.99999, "99.999 %"),
        (0.0001, "0.01 %"),
        (0.0, "0 %"),
    ],
)
def test_percent_is_never_rounded_to_all_or_nothing(share, text):
    assert words.percent(share) == text


def test_interval_has_the_digits_that_its_width_deserves():
    assert words.interval(2.3141, 2.1012, 2.5193) == "+2.31 [2.10, 2.52]"
    assert words.interval(-0.139, -0.271, 0.0011) == "−0.14 [−0.27, 0.00]"
    assert words.interval(1.5, float("nan"), float("nan")) == "+1.50"
    assert words.interval(2.0, 2.0, 2.0) == "+2.00 [2.00, 2.00]"


def test_listed():
    assert words.listed([]) == ""
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"


def test_estimand_names_metric_direction_and_norm():
    text = words.effect_estimand(
        {"metric": "logprob", "direction": "noise", "norm": "frozen", "position": "end"}, "the head"
    )
    assert "log-probability of y in the clean run" in text
    assert "that of the corrupt run" in text
    assert "scale frozen" in text
