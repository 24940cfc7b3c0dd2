"""Beliefs, likelihoods and samples of processes against sums over hidden paths, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from tests.tasks.processes.paths import joint, strings

ALL = [P.mess3(), P.rrxor(), P.z1r(), P.golden_mean(0.3), P.even(0.6), P.iid((0.2, 0.5, 0.3))]


@pytest.mark.parametrize("process", ALL, ids=lambda process: process.name)
def test_beliefs_and_likelihoods_are_sums_over_hidden_paths(process):
    for string in strings(process, 3):
        expected = joint(process, string)
        found = process.log_likelihood([string])[0]
        if expected.sum() == 0:
            assert found == -np.inf
            with pytest.raises(MechnumError, match="cannot emit"):
                process.beliefs([string])
            continue
        assert np.exp(found) == pytest.approx(expected.sum(), abs=1e-14)
        beliefs = process.beliefs([string])[0]
        np.testing.assert_allclose(beliefs[-1], expected / expected.sum(), atol=1e-13)
        np.testing.assert_allclose(beliefs.sum(axis=-1), 1, atol=1e-12)
        following = [joint(process, (*string, x)).sum() for x in range(process.n_tokens)]
        np.testing.assert_allclose(
            process.next_token(beliefs[-1]), np.array(following) / expected.sum(), atol=1e-13
        )


@pytest.mark.parametrize("process", ALL, ids=lambda process: process.name)
def test_rows_and_stationary_law(process):
    np.testing.assert_allclose(process.transition.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(process.emission.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(process.start @ process.transition, process.start, atol=1e-14)
    assert not process.matrices.flags.writeable
    assert not process.start.flags.writeable


def test_published_matrices():
    """Entries and stationary laws as Shai et al. 2024 print them."""
    ay, bx, ax, by = 0.765, 0.00375, 0.0425, 0.0675
    expected = [
        [[ay, bx, bx], [ax, by, bx], [ax, bx, by]],
        [[by, ax, bx], [bx, ay, bx], [bx, ax, by]],
        [[by, bx, ax], [bx, by, ax], [bx, bx, ay]],
    ]
    np.testing.assert_allclose(P.mess3().matrices, expected, atol=1e-15)
    np.testing.assert_allclose(P.mess3().start, 1 / 3, atol=1e-15)
    np.testing.assert_allclose(P.rrxor().start, np.array([2, 1, 1, 1, 1]) / 6, atol=1e-15)


def test_one_update_by_hand():
    """Mess3 from (1/3, 1/3, 1/3) after 0: columns of T⁰ sum to .85, .075, .075."""
    np.testing.assert_allclose(P.mess3().beliefs([[0]])[0, 1], [0.85, 0.075, 0.075], atol=1e-15)
    # Two steps of the golden mean: 1/3 of all tokens are 0, after which 1 must come.
    process = P.golden_mean()
    np.testing.assert_allclose(process.start, [2 / 3, 1 / 3])
    np.testing.assert_allclose(process.beliefs([[0, 1]])[0], [[2 / 3, 1 / 3], [0, 1], [1, 0]])


@pytest.mark.parametrize("n", [1, 5, 300])
def test_many_strings_are_updated_as_each_alone(n):
    """Beginnings come from a table and the rest step by step; both must agree with one string."""
    process = P.mess3(0.15, 0.6)
    sample = process.sample(n, 12, seed=3)
    together = process.beliefs(sample)
    for row in range(min(n, 20)):
        np.testing.assert_allclose(together[row], process.beliefs(sample[row : row + 1])[0])


def test_impossible_strings_are_named_by_row_and_position():
    with pytest.raises(MechnumError, match="token 0 at position 2 of string 1"):
        P.golden_mean().beliefs([[0, 1, 0], [1, 0, 0]])


def test_long_strings_do_not_underflow():
    process = P.mess3()
    string = process.sample(1, 1200, seed=1)
    total, belief = 0.0, process.start
    for token in string[0]:
        after = belief @ process.matrices[token]
        total += np.log(after.sum())
        belief = after / after.sum()
    assert total < np.log(np.finfo(float).tiny)
    assert process.log_likelihood(string)[0] == pytest.approx(total, rel=1e-12)


def test_samples_come_as_often_as_their_likelihood_says():
    for process in (P.rrxor(), P.mess3(), P.golden_mean(0.2)):
        sample = process.sample(40_000, 3, seed=0)
        found, counts = np.unique(sample, axis=0, return_counts=True)
        probability = np.exp(process.log_likelihood(found))
        assert probability.sum() == pytest.approx(1, abs=1e-3)
        error = np.abs(counts / 40_000 - probability) / np.sqrt(probability / 40_000)
        assert error.max() < 4


def test_sampling_depends_on_the_seed_alone():
    process = P.rrxor()
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    first = process.sample(50, 20, seed=7)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.testing.assert_array_equal(first, process.sample(50, 20, seed=7))
    np.testing.assert_array_equal(first, process.sample(50, 20, np.random.SeedSequence(7)))
    assert (first != process.sample(50, 20, seed=8)).any()


def test_draws_next_to_one_stay_in_their_row():
    """A uniform draw of 1 − 2⁻⁵³ in row 3 rounds to the beginning of row 4."""
    from mechnum.tasks.processes.process import _drawn

    class Greatest:
        def random(self, n):
            return np.full(n, np.nextafter(1, 0))

    rows = np.array([[0.5, 0.5, 0.0]] * 5)
    drawn = _drawn.__wrapped__(rows, np.arange(5), Greatest())
    np.testing.assert_array_equal(drawn, 1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrices": [[[0.5, 0.4], [0, 1]]]}, r"row 0 \(state 0\) sums to 0.9 over all tokens"),
        ({"matrices": [[[1.5, -0.5], [0, 1]]]}, "takes state 0 to 1 with -0.5"),
        ({"matrices": [[[np.nan, 1], [0, 1]]]}, "with nan"),
        ({"matrices": [[[1.0, 0.0]]]}, "square matrix"),
        ({"matrices": []}, "square matrix"),
        ({"matrices": "words"}, "square matrix"),
        ({"matrices": [[[1.0]]], "tokens": ["a", "b"]}, "has 1 tokens"),
        ({"matrices": [[[0.5]], [[0.5]]], "tokens": ["a", "a"]}, "all different"),
        ({"matrices": [[[1.0]]], "start": [0.5]}, "sums to 0.5"),
        ({"matrices": [[[1.0]]], "start": [0.5, 0.5]}, "not 1 probabilities"),
    ],
)
def test_wrong_matrices_are_refused_in_one_line(arguments, message):
    with pytest.raises(MechnumError, match=message) as refused:
        P.from_matrices(**arguments)
    assert "\n" not in str(refused.value)


def test_several_closed_classes_are_named_and_need_a_start():
    matrices = [[[1, 0, 0], [0, 1, 0], [0.5, 0.25, 0.25]]]
    with pytest.raises(MechnumError, match=r"2 closed classes, \{a\}; \{b\}"):
        P.from_matrices(matrices, states=("a", "b", "c"))
    assert P.from_matrices(matrices, start=(0, 0, 1)).start[2] == 1


def test_transient_states_have_no_stationary_weight():
    process = P.from_matrices([[[0.5, 0.5, 0], [0, 0.2, 0.8], [0, 0.4, 0.6]]])
    np.testing.assert_allclose(process.start, [0, 1 / 3, 2 / 3], atol=1e-15)


def test_small_stationary_weights_are_right_to_rounding():
    """A birth-death chain has a closed form, here down to 10⁻³⁶."""
    n, up, down = 13, 1e-3, 1 - 1e-3
    chain = np.zeros((n, n))
    for i in range(n):
        chain[i, min(i + 1, n - 1)] += up
        chain[i, max(i - 1, 0)] += down
    expected = (up / down) ** np.arange(n)
    np.testing.assert_allclose(
        P.from_matrices(chain[None]).start, expected / expected.sum(), rtol=1e-12
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("given", [[[0, 3]], [[-1]], [[0.5]], [], [0, 1]])
def test_strings_that_are_none_are_refused(given):
    with pytest.raises(MechnumError):
        P.mess3().beliefs(given)


@pytest.mark.parametrize("make", [lambda: P.mess3(0.6), lambda: P.golden_mean(1.5)])
def test_impossible_parameters_are_refused(make):
    with pytest.raises(MechnumError, match="give a number from 0"):
        make()


def test_names_of_processes_lead_back_to_them():
    for process in (*ALL, P.carry(4, 0.25)):
        again = P.find_process(process.name)
        np.testing.assert_allclose(again.matrices, process.matrices, atol=1e-15)
        assert again.tokens == process.tokens
    for text in ("messy", "mess3:a", "rrxor:1", "mess3:1,2,3", "absent.toml"):
        with pytest.raises(MechnumError):
            P.find_process(text)


def test_processes_in_files(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('tokens = ["x", "y"]\nmatrices = [[[0, 0.5], [0, 0]], [[0.5, 0], [1, 0]]]\n')
    found = P.find_process(str(path))
    np.testing.assert_allclose(found.matrices, P.golden_mean().matrices)
    assert (found.name, found.tokens) == ("own", ("x", "y"))
    path.write_text("matrix = [[[1.0]]]\n")
    with pytest.raises(MechnumError, match="correct the file"):
        P.read_process(path)
    path.write_text("matrices = [[[1.0]]\n")
    with pytest.raises(MechnumError, match="is not TOML"):
        P.read_process(path)
    path.write_text("matrices = [[[0.7]]]\n")
    with pytest.raises(MechnumError, match=r"sums to 0\.7"):
        P.read_process(path)


def test_beliefs_of_products_are_outer_products():
    first, second = P.mess3(), P.golden_mean(0.3)
    both = P.product(first, second)
    one, other = first.sample(40, 6, seed=1), second.sample(40, 6, seed=2)
    found = both.beliefs(one * second.n_tokens + other)
    outer = np.einsum("nps,npt->npst", first.beliefs(one), second.beliefs(other))
    np.testing.assert_allclose(found, outer.reshape(found.shape), atol=1e-13)
    assert both.tokens[3] == "1,1"


def test_beliefs_of_mixtures_are_those_of_an_observer_who_does_not_know_which():
    parts, weights = (P.golden_mean(), P.even()), (0.3, 0.7)
    mixed = P.mixture(parts, weights)
    for string in strings(mixed, 5):
        likelihoods = [w * joint(own, string).sum() for own, w in zip(parts, weights)]
        if sum(likelihoods) == 0:
            continue
        belief = mixed.beliefs([string])[0, -1].reshape(2, 2)
        np.testing.assert_allclose(belief.sum(axis=1), np.array(likelihoods) / sum(likelihoods))
    with pytest.raises(MechnumError, match="one alphabet"):
        P.mixture([P.golden_mean(), P.mess3()])
