"""Untrained twins: same shape, other weights, a seed, and no trace left."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models import untrained
from tests import fixtures
from tests.beliefs.planted import random_net


@pytest.mark.parametrize("make", [random_net, lambda: mn.wrap(fixtures.gpt2())])
def test_twins_have_the_shape_and_fresh_weights(make):
    model = make()
    torch.default_generator.manual_seed(3)
    state = torch.get_rng_state()
    before = model.fingerprint
    first, same, other = untrained(model, 1), untrained(model, 1), untrained(model, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.fingerprint == before
    assert first.fingerprint == same.fingerprint
    assert len({before, first.fingerprint, other.fingerprint}) == 3
    assert first.spec == model.spec
    assert first.dtype == model.dtype
    assert first.name == f"untrained {model.name}"


def test_other_models_are_refused():
    model = replace(random_net(), wrapped=torch.nn.Linear(2, 2))
    with pytest.raises(MechnumError, match="give it as `untrained`"):
        untrained(model)
