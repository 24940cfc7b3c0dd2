"""The engine on nets whose every effect was worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.patching import effects, path_effects
from tests.patching.answers import cases, with_neurons
from tests.patching.test_micro import NETS


@pytest.fixture(params=NETS)
def net(request):
    build, pairs, answers = NETS[request.param]
    return build(), pairs(), answers


def place(position):
    return "all" if position is None else position


def test_both_prompts_score_as_worked_out(net):
    model, pairs, answers = net
    found = effects(model, pairs, "heads")
    np.testing.assert_allclose(found["clean_metric"], [float(answers.clean_metric)], atol=1e-12)
    np.testing.assert_allclose(found["corrupt_metric"], [float(answers.corrupt_metric)], atol=1e-12)


@pytest.mark.parametrize(
    ("variable", "table"),
    [("total", "totals"), ("direct", "directs"), ("direct_frozen", "frozen_directs")],
)
def test_effects_of_nodes(net, variable, table):
    model, pairs, answers = net
    for name, position, expected in cases(with_neurons(getattr(answers, table))):
        found = effects(model, pairs, [name], place(position))
        assert float(found[variable][0, 0]) == pytest.approx(expected, abs=1e-12), (name, position)


def test_effects_of_edges(net):
    model, pairs, answers = net
    for name, position, expected in cases(with_neurons(answers.edges)):
        sender, _, receiver = name.partition(" -> ")
        found = path_effects(model, pairs, [sender], [receiver], position=place(position))
        assert float(found["effect"][0, 0, 0]) == pytest.approx(expected, abs=1e-12), (
            name,
            position,
        )
