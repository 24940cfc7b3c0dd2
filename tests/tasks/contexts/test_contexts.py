"""Numbers in texts: every one is drawn, its place is that of its digits, and labels are right."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.tasks.contexts import (
    CONTEXTS,
    ORDINALS,
    Context,
    context_prompts,
    ordinal_prompts,
    own_context,
)
from mechnum.tasks.encoding import Encoder
from tests.tasks.small_tokenizers import digit_level, gpt2_like, word_level
from tests.tasks.stand_in import Spec, StandIn

MODEL = StandIn(digit_level(), Spec(d_vocab=3000, d_vocab_out=3000, n_ctx=256))
NUMBERS = range(7, 300)


def rows(groups):
    """Every number of every text: group, row, place, value."""
    for group in groups:
        for row in range(len(group)):
            yield from (
                (group, row, place, value)
                for place, value in zip(
                    group.places[row].tolist(), group.values[row].tolist(), strict=True
                )
            )


def test_every_number_of_a_text_is_a_drawn_one_at_its_last_digit():
    groups = context_prompts(MODEL, numbers=NUMBERS, per_number=2, seed=1)
    found = Counter()
    for group in groups:
        for row, text in enumerate(group.texts):
            assert re.findall("[0-9]+", text) == [str(v) for v in group.values[row].tolist()]
            for place, value in zip(group.places[row], group.values[row], strict=True):
                spelled = MODEL.tokenizer.decode(group.tokens[row, : int(place) + 1])
                assert spelled.endswith(str(int(value)))
                found[int(value)] += 1
    assert set(found) == set(NUMBERS)
    extra = sum(found.values()) - 2 * len(NUMBERS)
    assert min(found.values()) == 2
    assert 0 <= extra < 4


def test_labels_lead_back_to_the_template():
    groups = context_prompts(MODEL, numbers=NUMBERS, per_number=3)
    templates = [(name, text) for name in CONTEXTS for text in own_context(name).texts]
    used = Counter()
    for group in groups:
        for row, text in enumerate(group.texts):
            name, template = templates[int(group.variables["template"][row])]
            assert group.contexts[row] == name
            assert re.sub("[0-9]+", "#", text) == re.sub("[0-9]+", "#", template)
            used[template] += 1
    assert len(used) == len(templates)
    assert max(used.values()) - min(used.values()) <= 1
    group = max(groups, key=len)
    some = group.select(torch.tensor([3, 0]))
    assert some.contexts == (group.contexts[3], group.contexts[0])
    assert some.values.tolist() == group.values[[3, 0]].tolist()
    index = torch.cat([group.index for group in groups])
    assert sorted(index.tolist()) == list(range(len(index)))


def test_own_contexts_have_twenty_templates_without_duplicates():
    every = [text for name in CONTEXTS for text in own_context(name).texts]
    assert len(set(every)) == len(every)
    assert min(len(own_context(name).texts) for name in CONTEXTS) >= 20
    # A number at the very start would sit on the first token, whose state is like no other.
    assert not any(text[0].isdigit() for text in every)


def test_the_seed_decides_and_another_draws_anew():
    one, same, other = (
        context_prompts(MODEL, ("time",), NUMBERS, 1, seed=seed) for seed in (0, 0, 1)
    )
    assert [group.texts for group in one] == [group.texts for group in same]
    assert [group.texts for group in one] != [group.texts for group in other]


@pytest.mark.parametrize("piece", [0, -2, 2])
def test_any_piece_and_numbers_without_it_are_not_read(piece):
    """Every digit is a token: piece −2 of 483 is the 8, and 7 has none."""
    groups = context_prompts(MODEL, ("finance",), range(1000), 1, piece=piece)
    least = {0: 0, -2: 10, 2: 100}[piece]
    values = set()
    for group, row, place, value in rows(groups):
        assert MODEL.tokenizer.decode(group.tokens[row, place]) == str(value)[piece]
        values.add(value)
    assert values == set(range(least, 1000))


def test_decimals_are_one_number_and_long_texts_are_cut():
    context = Context("odd", ("It cost 1,250.50 at 12:30 and B7.", "Never " * 40 + "1"))
    model = StandIn(gpt2_like(), Spec(d_vocab=3000, d_vocab_out=3000, n_ctx=99))
    groups = context_prompts(model, (context,), range(10, 60), 1, longest=30)
    assert len(groups) == 1
    assert re.sub("[0-9]+", "#", groups[0].texts[0]) == "It cost # at #:# and B#."
    assert groups[0].places.shape[1] == 4
    cut = context_prompts(model, (context,), range(10, 60), 1, longest=12)
    assert {group.tokens.shape[1] for group in cut} == {12}


def test_numbers_behind_what_is_read_are_not_looked_for(monkeypatch):
    """Of a line of thousands of numbers it would take the square of their count."""
    looked = []
    pieces = Encoder.pieces
    monkeypatch.setattr(
        Encoder, "pieces", lambda *given: looked.append(given[2:]) or pieces(*given)
    )
    context = Context("one line", ("and 1 " * 3000,))
    (group,) = context_prompts(MODEL, (context,), range(10, 60), 1, longest=30)
    assert group.tokens.shape == (1, 30)
    assert group.places.shape[1] <= len(looked) <= group.places.shape[1] + 1


def test_refusals_are_one_line():
    for match, call in {
        "no context 'tides'": lambda: context_prompts(MODEL, ("tides",)),
        "give one or more, each": lambda: context_prompts(MODEL, ("time", "time")),
        "-1 is negative": lambda: context_prompts(MODEL, numbers=[-1]),
        f"{2**53} is negative or too large": lambda: context_prompts(MODEL, numbers=[2**53]),
        "tokens of the texts are unknown": lambda: context_prompts(
            StandIn(word_level()), numbers=[5]
        ),
        "no numbers": lambda: context_prompts(MODEL, numbers=[]),
        "per_number is 0": lambda: context_prompts(MODEL, per_number=0),
        "has no tokenizer": lambda: context_prompts(StandIn()),
        "no token to read": lambda: context_prompts(MODEL, numbers=[5], piece=3),
        "'260' has no token": lambda: context_prompts(StandIn(word_level()), numbers=[260]),
        "has no number": lambda: Context("x", ("no digits",)),
        "no text with a number": lambda: Context("x", ()),
        "no ordinals 'eras'": lambda: ordinal_prompts(MODEL, "eras"),
    }.items():
        with pytest.raises(MechnumError, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_ordinals_are_read_at_the_last_token_of_their_word():
    groups = ordinal_prompts(MODEL, "weekdays")
    assert sum(map(len, groups)) == 70
    for group, row, place, value in rows(groups):
        read = MODEL.tokenizer.decode(group.tokens[row, : place + 1])
        assert read.endswith(ORDINALS["weekdays"][value])
        assert read == group.texts[row]
