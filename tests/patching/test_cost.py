"""What takes long or fills the memory is said before it runs, with the right figures."""

from __future__ import annotations

import warnings

import pytest

import mechnum as mn
from mechnum.patching import attribute, cost, effects, path_effects
from tests import fixtures
from tests.patching.test_effects import given_pairs


@pytest.fixture
def model():
    return mn.wrap(fixtures.llama())


def said(monkeypatch, limit, value, call):
    """What a call warns of, with one limit set."""
    monkeypatch.setattr(cost, limit, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def test_nothing_is_said_of_small_measurements(model, recwarn):
    effects(model, given_pairs(), "heads", "each")
    path_effects(model, given_pairs(), "heads", "logits")
    assert not recwarn


def test_the_size_of_a_result(model, monkeypatch):
    # 3 pairs of 5 positions, 3 layers of 64 neurons; total, two kinds of direct, and indirect.
    n_bytes = 8 * 4 * 3 * 5 * 3 * 64

    def sweep():
        effects(model, given_pairs(), "neurons", "each")

    assert not said(monkeypatch, "TABLE_LIMIT", n_bytes, sweep)
    (line,) = said(monkeypatch, "TABLE_LIMIT", n_bytes - 1, sweep)
    assert line.startswith("the result of these effects of neurons takes 0.0 GiB of memory: name")


@pytest.mark.parametrize(
    ("position", "prompts"), [("end", 3 / 5), ("a", 3 * 4 / 5), ("all", 3), ("each", 3 * 3)]
)
def test_forwards_of_total_effects(model, monkeypatch, position, prompts):
    # A head of layer l recomputes its own MLP and the layers above: 4 heads × (5 + 3 + 1) halves.
    n_forwards = prompts * 6

    def total():
        effects(model, given_pairs(), "heads", position)

    assert not said(monkeypatch, "FORWARD_LIMIT", n_forwards + 0.01, total)
    (line,) = said(monkeypatch, "FORWARD_LIMIT", n_forwards - 0.01, total)
    assert f"as much as {n_forwards:,.0f} forwards of a prompt: rank the nodes" in line

    def direct():
        effects(model, given_pairs(), "heads", position, estimands=("direct",))

    assert not said(monkeypatch, "FORWARD_LIMIT", 0, direct)


def test_forwards_of_paths(model, monkeypatch):
    # 8 heads of layers 0 and 1 reach 4 queries of layer 2 (half a layer is left to run), those of
    # layer 0 reach 4 of layer 1 (a layer and a half): (8 × 4 × 1 + 4 × 4 × 3) / 2 layers for each
    # of 3 pairs, of 3 layers a forward.
    def paths():
        path_effects(model, given_pairs(), "heads", "q")

    assert not said(monkeypatch, "FORWARD_LIMIT", 40, paths)
    (line,) = said(monkeypatch, "FORWARD_LIMIT", 39.9, paths)
    assert "these path effects take as much as 40 forwards" in line


def test_the_size_of_estimates(model, monkeypatch):
    def estimates():
        attribute(model, given_pairs(), "gradient", "neurons", position="each")

    (line,) = said(monkeypatch, "TABLE_LIMIT", 8 * 3 * 5 * 3 * 64 - 1, estimates)
    assert "the result of these estimates" in line
