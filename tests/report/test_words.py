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


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "that of the clean run"),
        ({"direction": "noise"}, "that of the corrupt run"),
        ({"values": "zero"}, "zero"),
        ({"values": "mean", "mean_over": "token"}, "its mean over the corrupt prompts of all pairs "
         "(one mean over all tokens)"),
        ({"values": "resample", "direction": "noise"}, "that of another pair's clean prompt"),
    ],
)  # fmt: skip
def test_what_values_are_replaced_by(values, text):
    assert words.replacement(values) == text


@pytest.mark.parametrize(
    ("position", "text"),
    [("end", "the last position"), ("all", "every position"), ("each", "one position at a time"),
     ("a", "position a"), ("-2", "position −2")],
)  # fmt: skip
def test_where_values_are_replaced(position, text):
    assert words.place({"position": position}) == text


def test_path_estimand_names_variant_norm_and_what_is_kept():
    edge = words.path_estimand({"variant": "edge", "norm": "frozen", "position": "all"})
    assert "only the receiver reads the difference" in edge
    assert "keeps its scale" in edge
    path = words.path_estimand({"variant": "path", "frozen": "attn,mlps", "norm": "exact"})
    assert "attention and MLPs kept as in the corrupt run" in path
    assert "is recomputed" in path
    assert "kept" not in words.path_estimand({"variant": "path", "frozen": ""})


@pytest.mark.parametrize(
    ("q", "text"), [(0.0004, "< 0.001"), (0.0123, "0.012"), (1.0, "1.000"),
                    (float("nan"), "not available")],
)  # fmt: skip
def test_q_value(q, text):
    assert words.q_value(q) == text


def test_fixed_decimals_have_no_negative_zero():
    assert words.fixed(-1.9e-7, 1) == "0.0"
    assert words.fixed(-1234.56, 1) == "−1,234.6"
