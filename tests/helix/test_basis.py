"""Columns of a number: which are kept, which are dropped, and that they are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import legendre

from mechnum.errors import InvalidInput, MechnumError
from mechnum.helix.basis import (
    HelixBasis,
    PolynomialBasis,
    check_periods,
    independent_columns,
    parse_periods,
)
from tests.helix.synthetic import columns

NUMBERS = np.arange(100)


def test_ten_columns_of_rank_nine_lose_the_dead_sine() -> None:
    basis = HelixBasis().fit(NUMBERS)
    assert len(basis.columns_) + len(basis.dropped_) == 10
    assert basis.rank_ == 9
    assert basis.dropped_ == ("sin(T=2)",)
    assert basis.columns_[:3] == ("constant", "linear", "cos(T=2)")
    kept = basis.transform(NUMBERS)
    np.testing.assert_allclose(kept, columns(NUMBERS), atol=1e-9)
    assert np.linalg.cond(kept) < 10


def test_the_sine_of_period_two_lives_between_the_integers() -> None:
    basis = HelixBasis((2,)).fit(NUMBERS / 4)
    assert basis.dropped_ == ()
    assert basis.rank_ == 4


def test_dependent_columns_go_and_the_earlier_ones_stay() -> None:
    even = HelixBasis((2, 10)).fit(2 * NUMBERS)
    assert even.dropped_ == ("cos(T=2)", "sin(T=2)")  # cos is the constant on even numbers
    twice = HelixBasis((10, 10), linear=False).fit(NUMBERS)
    assert twice.columns_ == ("constant", "cos(T=10)", "sin(T=10)")
    assert twice.dropped_ == ("cos(T=10)", "sin(T=10)")
    one = HelixBasis((5,), linear=False).fit(np.column_stack([NUMBERS, np.full(100, 7)]))
    assert one.dropped_ == ("cos(T=5) of x1", "sin(T=5) of x1")


def test_the_rule_measures_what_the_kept_columns_do_not_span() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50))
    matrix = np.stack([a, b, a - 2 * b, a + 1e-9 * rng.normal(size=50), 0 * a], axis=1)
    assert independent_columns(matrix).tolist() == [True, True, False, False, False]
    matrix[:, 2] += 1e-3 * rng.normal(size=50)
    assert independent_columns(matrix).tolist() == [True, True, True, False, False]


def test_a_dropped_column_stays_dropped_on_other_numbers() -> None:
    basis = HelixBasis((2, 5)).fit(NUMBERS)
    assert basis.transform([0.5, 1.5]).shape == (2, basis.rank_)


def test_several_variables_share_one_constant() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 100, size=(2, 400))
    two = HelixBasis().fit(np.column_stack([a, b]))
    assert (two.rank_, len(two.dropped_)) == (17, 2)
    three = HelixBasis().fit(np.column_stack([a, b, a + b]))
    # cos(T=2) of a + b is a product, not a sum: only the linear column is spanned by a and b.
    assert three.rank_ == 24
    assert three.dropped_ == (
        "sin(T=2) of x0",
        "sin(T=2) of x1",
        "linear of x2",
        "sin(T=2) of x2",
    )
    assert three.columns_.count("constant") == 1


def test_table_columns_name_the_variables() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": NUMBERS, "b": NUMBERS[::-1] ** 2})
    basis = HelixBasis((7,)).fit(table)
    assert "cos(T=7) of b" in basis.columns_
    assert list(basis.get_feature_names_out()) == list(basis.columns_)


def test_polynomials_are_legendre_polynomials_of_the_scaled_number() -> None:
    scaled = 2 * NUMBERS / 99 - 1
    values = PolynomialBasis(9).fit(NUMBERS).transform(NUMBERS)
    for degree in range(10):
        expected = legendre.Legendre.basis(degree)(scaled)
        np.testing.assert_allclose(values[:, degree], expected, atol=1e-12)


@pytest.mark.parametrize("periods", [(0,), (-5,), (float("nan"),), (float("inf"),), ("ten",), 5])
def test_impossible_periods_are_refused(periods: object) -> None:
    with pytest.raises(MechnumError, match="period") as caught:
        HelixBasis().set_params(periods=periods).fit(NUMBERS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("degree", [0, -1, 2.5, True])
def test_impossible_degrees_are_refused(degree: object) -> None:
    with pytest.raises(MechnumError, match=r"degree is .*: give a whole number"):
        PolynomialBasis().set_params(degree=degree).fit(NUMBERS)


def test_fewer_numbers_than_columns_are_refused() -> None:
    repeated = np.repeat(np.arange(8), 50)
    with pytest.raises(MechnumError, match=r"8 distinct numbers .* fix 9 columns: give more"):
        HelixBasis().fit(repeated)
    assert HelixBasis().fit(np.arange(9)).rank_ <= 9


def test_large_numbers_keep_their_linear_column() -> None:
    assert HelixBasis((10,)).fit(10**7 + NUMBERS).columns_[1] == "linear"


def test_periods_in_words() -> None:
    assert parse_periods("2, 5,100") == (2.0, 5.0, 100.0)
    for text, message in (("1.25", "whole numbers cannot tell period 1.25"), (",", "no periods"),
                          ("2,x", "are not numbers")):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            parse_periods(text)
    with pytest.raises(InvalidInput, match="'10' are not numbers"):
        check_periods("10")
