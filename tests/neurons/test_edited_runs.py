"""Runs with edited neurons: what is run once for all edits is what a whole run would give."""

from __future__ import annotations

import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.neurons.edited_runs import answers_with
from tests import fixtures
from tests.fourier.sums import sums

# Two lengths, so that a position is another place in some prompts.
PROMPTS = sums(9, long=4)


def turned(name, layer, value, rows):
    """Other values, which depend on the prompt."""
    if name != "mlp_hidden" or layer == 1:
        return value
    return value.flip(-1) * (3 + rows.to(value)[:, None])


def unchanged(name, layer, value, rows):
    return value


def slowly(model, position):
    """The same from whole runs of one prompt each."""
    found, row = [], 0
    for group in PROMPTS:
        for tokens, place in zip(group.tokens, group.positions[position], strict=True):

            def edit(name, layer, value, first, place=int(place), row=row):
                if name not in ("mlp_pre", "mlp_hidden"):
                    return value
                changed = value.clone()
                own = value[0, :, place]
                changed[0, :, place] = turned(name, layer, own, torch.tensor([row]))
                return changed

            run = model.run(tokens[None], edit=edit)
            found.append(model.decoder.logits(run.last[:, -1]).argmax(-1))
            row += 1
    return torch.cat(found)


@pytest.mark.parametrize("position", ["a", "b", "end"])
def test_edits_at_any_position_are_those_of_whole_runs(position):
    model = mn.wrap(fixtures.llama())
    found = answers_with(model, PROMPTS, [unchanged, turned], position)
    plain = torch.cat([model.logits(group.tokens).argmax(-1) for group in PROMPTS])
    assert torch.equal(found[0], plain)
    expected = slowly(model, position)
    assert torch.equal(found[1], expected)
    assert (expected != plain).any()
    with memory_budget(1):
        assert torch.equal(answers_with(model, PROMPTS, [unchanged, turned], position), found)


def test_no_prompts_unknown_positions_and_overflow_are_refused():
    model = mn.wrap(fixtures.gptj())
    with pytest.raises(MechnumError, match="no prompts to run"):
        answers_with(model, (), [unchanged])
    with pytest.raises(MechnumError, match="no position 'c'"):
        answers_with(model, PROMPTS, [unchanged], "c")
    with pytest.raises(MechnumError, match="gives logits that are not numbers"):
        answers_with(model, PROMPTS, [lambda name, layer, value, rows: value * torch.nan])
