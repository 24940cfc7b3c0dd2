"""Similarity of two tables: rotations are alike, shuffles are not, and chance is where it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import kendalltau, pearsonr, spearmanr

import mechnum as mn
from mechnum.cka import linear_cka
from mechnum.errors import InvalidInput, MechnumError
from mechnum.probes import number_similarity, similarity_map, token_rows
from mechnum.probes.similarity import NULLS
from mechnum.probes.similarity_measures import match_curve
from tests.fixtures import llama

from .planted import circles
from .texts import reader

N = 60
GENERATOR = np.random.default_rng(7)
ROWS = circles(np.arange(N), (60, 20, 10, 4, 2), 24, 0.05) + 0.2
NOISE = GENERATOR.normal(size=(N, 20)) + 0.3
RSA = [f"{kind} {how}" for kind in ("dot", "cosine", "euclid") for how in ("pearson", "spearman")]


def turned(rows):
    d = rows.shape[1]
    return rows @ np.linalg.qr(GENERATOR.normal(size=(d, d)))[0]


def measured(a, b, draws=3, top=5, **more):
    return number_similarity(a, b, draws=draws, top=top, **more)


def test_two_rotations_of_one_embedding_are_the_same():
    found = measured(turned(ROWS), turned(ROWS), draws=39)
    value = found["value"]
    np.testing.assert_allclose(value.sel(measure=[*RSA, "cka", "spectra"]), 1, atol=1e-9)
    assert float(value.sel(measure="kendall")) > 0.99
    assert found["p"].sel(null="shuffled").values.tolist() == [1 / 40] * 9
    assert found["p"].sel(null="gaussian").values.tolist() == [1 / 40] * 9
    assert found["p"].sel(null="tokens").isnull().all()


def test_shuffled_rows_have_nothing_in_common_and_p_says_so():
    """Over twenty shuffles p is spread over 0 … 1, as that of a true null has to be."""
    shuffled = [ROWS[GENERATOR.permutation(N)] for _ in range(20)]
    found = [measured(ROWS, rows, draws=9) for rows in shuffled]
    values = np.array([one["value"].sel(measure=RSA).values for one in found])
    assert np.abs(values.mean(axis=0)).max() < 0.02
    assert np.abs(values).max() < 0.3
    p = np.array([one["p"].sel(null="shuffled", measure=RSA).values for one in found])
    np.testing.assert_allclose(p.mean(axis=0), 0.55, atol=0.25)


def test_values_are_those_of_plain_scipy():
    found = measured(ROWS, NOISE)["value"]
    above = np.triu_indices(N, 1)

    def alike(rows):
        cosine = 1 - pdist(rows, "cosine")
        return {"dot": (rows @ rows.T)[above], "cosine": cosine, "euclid": pdist(rows)}

    ours, theirs = alike(ROWS), alike(NOISE)
    for kind in ours:
        for how, statistic in (("pearson", pearsonr), ("spearman", spearmanr)):
            wanted = statistic(ours[kind], theirs[kind]).statistic
            assert float(found.sel(measure=f"{kind} {how}")) == pytest.approx(wanted, abs=1e-10)
    assert float(found.sel(measure="cka")) == pytest.approx(linear_cka(ROWS, NOISE))

    def spectrum(rows):
        """Largest amplitude of any principal component, from eigenvectors and a plain DFT."""
        spread = rows - rows.mean(axis=0)
        axes = np.linalg.eigh(spread.T @ spread)[1]
        waves = np.exp(-2j * np.pi * np.outer(np.arange(1, N // 2 + 1), np.arange(N)) / N)
        return np.abs(waves @ spread @ axes).max(axis=1)

    one, other = spectrum(ROWS), spectrum(NOISE)
    assert float(found.sel(measure="kendall")) == pytest.approx(
        kendalltau(one, other).statistic, abs=5e-3
    )
    tops = [set(np.argsort(-own)[:5]) for own in (one, other)]
    assert float(found.sel(measure="spectra")) == len(tops[0] & tops[1]) / len(tops[0] | tops[1])


def test_the_spectrum_is_of_the_rows_given():
    """The released code compared one model with itself: other periods must not match."""
    other = circles(np.arange(N), (30, 15, 12, 6, 3), 24, 0.05)
    found = measured(ROWS, other)
    assert float(found["value"].sel(measure="spectra")) == 0
    assert float(found["p"].sel(measure="spectra", null="shuffled")) > 0.5


def test_tokens_that_are_alike_are_a_null_that_numbers_must_beat():
    """All tokens of two models alike: numbers are no more alike than those, and p says so."""
    words = GENERATOR.normal(size=(200, 24))
    alike = measured(ROWS, turned(ROWS), 9, tokens_a=words, tokens_b=turned(words) * 2)
    assert (alike["null_mean"].sel(null="tokens", measure=[*RSA, "cka"]) > 0.99).all()
    apart = measured(ROWS, ROWS, 9, tokens_a=words, tokens_b=GENERATOR.normal(size=words.shape))
    assert float(apart["p"].sel(null="tokens", measure="cosine pearson")) == 0.1


def test_the_seed_decides_and_nulls_do_not_share_draws():
    one, same, other = (measured(ROWS, NOISE, 5, seed=seed) for seed in (0, 0, 1))
    assert one.identical(same)
    assert not np.array_equal(one["null_mean"], other["null_mean"], equal_nan=True)
    assert one["null"].values.tolist() == list(NULLS)


def test_impossible_comparisons_are_refused():
    zero = ROWS.copy()
    zero[3] = 0
    words = np.ones((200, 24)) * np.arange(1, 201)[:, None]
    for match, call in {
        "all rows of a table are the same": lambda: measured(ROWS, np.ones((N, 3))),
        "rows of 3 are 0": lambda: measured(ROWS, zero),
        "of other numbers|one number for each row": lambda: measured(ROWS, ROWS[:-1]),
        "3 numbers have too few pairs": lambda: measured(ROWS[:3], ROWS[:3]),
        "only one table of tokens": lambda: measured(ROWS, ROWS, tokens_a=words),
        "for 60 numbers": lambda: measured(ROWS, ROWS, tokens_a=words[:9], tokens_b=words[:9]),
        "another width": lambda: measured(ROWS, NOISE, tokens_a=words, tokens_b=words),
        "not finite": lambda: measured(ROWS, np.where(ROWS > 1, np.nan, ROWS)),
        "draws is 0": lambda: measured(ROWS, ROWS, draws=0),
    }.items():
        with pytest.raises(InvalidInput, match=match):
            call()


def test_more_frequencies_than_there_are_match_in_any_case():
    assert measured(ROWS, NOISE, top=30)["value"].sel(measure="spectra").isnull()


def test_token_rows_are_the_same_words_of_each_model():
    first, second = token_rows([reader(), reader()], n=20)
    np.testing.assert_array_equal(first, second)
    embedding = reader().decoder.weights.W_E.double().numpy()
    places = [int(np.flatnonzero((embedding == row).all(axis=1))[0]) for row in first]
    texts = [reader().tokenizer.decode([place]) for place in places]
    assert len(set(texts)) == 20
    assert all(text.isalpha() for text in texts)
    with pytest.raises(MechnumError, match="has no tokenizer"):
        token_rows([mn.wrap(llama())])


def test_match_by_number_of_frequencies_is_that_of_sets():
    one, other = GENERATOR.normal(size=(2, 13)) ** 2
    orders = [np.argsort(-own).tolist() for own in (one, other)]
    wanted = [
        len(set(orders[0][:n]) & set(orders[1][:n])) / len(set(orders[0][:n]) | set(orders[1][:n]))
        for n in range(1, 13)
    ]
    np.testing.assert_allclose(match_curve(one, other), wanted)
    found = measured(ROWS, NOISE, draws=9)
    assert float(found["match"].sel(n_top=5)) == float(found["value"].sel(measure="spectra"))
    band = found.sel(null="shuffled")
    # All frequencies but one have to match nearly, whatever the rows are.
    assert float(band["match_low"].isel(n_top=-1)) > 0.9
    assert (band["match_low"] <= band["match_high"]).all()
    assert found["match_mean"].sel(null="tokens").isnull().all()


def test_layers_share_their_draws_and_are_what_each_is_alone():
    words = GENERATOR.normal(size=(80, 24))
    layers = np.stack([ROWS, turned(ROWS) + 0.1 * GENERATOR.normal(size=ROWS.shape)])
    both = measured(layers, NOISE, tokens_a=np.stack([words, words]), tokens_b=words[:, :20])
    assert both["p"].dims == ("null", "layer", "measure")
    for layer, rows in enumerate(layers):
        alone = measured(rows, NOISE, tokens_a=words, tokens_b=words[:, :20])
        for name in alone.data_vars:
            np.testing.assert_array_equal(both[name].isel(layer=layer), alone[name])
    with pytest.raises(InvalidInput, match="tokens of 1 and 1 tables for 2 and 1 of numbers"):
        measured(layers, NOISE, tokens_a=words, tokens_b=words[:, :20])


def test_map_has_every_pair_once_and_both_ways():
    tables = {"rows": ROWS, "turned": turned(ROWS), "noise": NOISE}
    found = similarity_map(tables, top=5)["value"]
    np.testing.assert_array_equal(found, found.transpose("other", "place", "measure"))
    for one in tables:
        for other in tables:
            wanted = measured(tables[one], tables[other], draws=1)["value"]
            own = found.sel(place=one, other=other)
            np.testing.assert_allclose(own, wanted, atol=1e-12)
    with pytest.raises(InvalidInput, match="there are no tables"):
        similarity_map({})
