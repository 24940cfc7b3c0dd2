"""Prompts that hold one number and ask for nothing: to see how the number itself is represented."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, SupportsIndex, get_args

from mechnum.errors import MechnumError
from mechnum.tasks.arithmetic import ModularAddition, parse
from mechnum.tasks.encoding import Encoder
from mechnum.tasks.numbers import check_distinct, check_numbers, some
from mechnum.tasks.prompts import TokenSequences, check_fits, sequences_by_length

if TYPE_CHECKING:
    from mechnum.models.model import Model

BARE_NUMBER = "{n}"
DigitsMode = Literal["single", "last"]


def number_prompts(
    model: Model,
    numbers: Iterable[SupportsIndex] = range(100),
    template: str = BARE_NUMBER,
    digits: DigitsMode = "single",
) -> tuple[TokenSequences, ...]:
    """One text for each number: the number alone, or in a sentence.

    Where the tokenizer adds a BOS token, it stands in front, and nowhere else; without one, a bare
    number is the first token, where many models keep states of extreme size. A model without a
    tokenizer reads token n for the number n.

    Args:
        template: the text, with {n} for the number.
        digits: "single" refuses numbers of several tokens; "last" takes them at their last token.

    Returns:
        Groups of equal token count, shortest first, with the positions "n" and "end", and the
        variables "n" and "pieces", the number of tokens that spell the number.

    Raises:
        MechnumError: no numbers, one twice, a template without a single {n} set apart from other
            digits, numbers that the tokenizer splits (in "single" mode), does not know, or puts
            into one token with other text, and texts that the model cannot read.
    """
    if digits not in get_args(DigitsMode):
        raise MechnumError(f"digits={digits!r} is not known: use 'single' or 'last'")
    integers = check_numbers(numbers)
    before, after = around(template)
    if model.tokenizer is None:
        groups = _token_ids(model, integers, template)
    else:
        groups = _encoded(model, integers, before, after, digits)
    for group in groups:
        check_fits(model, group)
    return groups


def number_tokens(
    model: Model, numbers: Iterable[SupportsIndex] = range(100), template: str = BARE_NUMBER
) -> dict[int, int]:
    """Number → its token in the template.

    Raises:
        MechnumError: as `number_prompts`, on numbers of several tokens, and on two that share one.
    """
    integers = check_numbers(numbers)
    found = {}
    for group in number_prompts(model, integers, template, "single"):
        at = group.positions["n"][:, None]
        ids = group.tokens.gather(1, at)[:, 0].tolist()
        found |= dict(zip(group.variables["n"].tolist(), ids, strict=True))
    check_distinct(found)
    return {number: found[number] for number in integers}


def own_numbers(model: Model) -> range:
    """All numbers of a modular net, 0 to 99 of other models."""
    return range(_modulus(model) or 100)


def _modulus(model: Model) -> int | None:
    task = parse(model.default_task) if model.default_task else None
    return task.p if isinstance(task, ModularAddition) else None


def around(template: str) -> tuple[str, str]:
    """The text before and after the number."""
    before, found, after = template.partition(BARE_NUMBER)
    if not found or any(brace in before + after for brace in "{}"):
        raise MechnumError(
            f"the template {template!r} needs {{n}} once and no other braces: write it like "
            "'the number {n}'"
        )
    if before[-1:].isdigit() or after[:1].isdigit():
        raise MechnumError(
            f"the template {template!r} runs digits into the number: set {{n}} apart from them"
        )
    return before, after


def _token_ids(model: Model, numbers: Sequence[int], template: str) -> tuple[TokenSequences, ...]:
    if template != BARE_NUMBER:
        raise MechnumError(
            f"{model.name} has no tokenizer to read {template!r} with: leave the template out, "
            "the number n is then token n"
        )
    if (p := _modulus(model)) is not None:
        _refuse(
            [number for number in numbers if not 0 <= number < p],
            f"are no numbers of {model.name}, which adds modulo {p}",
            f"choose numbers from 0 to {p - 1}",
        )
    return sequences_by_length(
        token_ids=[(number,) for number in numbers],
        positions={"n": [0] * len(numbers)},
        variables={"n": numbers, "pieces": [1] * len(numbers)},
        texts=[str(number) for number in numbers],
    )


def _encoded(
    model: Model, numbers: Sequence[int], before: str, after: str, digits: DigitsMode
) -> tuple[TokenSequences, ...]:
    encoder = Encoder(model.tokenizer, model.name)
    texts = [f"{before}{number}{after}" for number in numbers]
    encoded = encoder(texts)
    spelled = [
        encoder.pieces(one, len(before), len(before) + len(str(number)))
        for number, one in zip(numbers, encoded, strict=True)
    ]
    rows = list(zip(numbers, encoded, spelled, strict=True))
    _refuse(
        [number for number, _, pieces in rows if not pieces],
        f"share a token with the text around them in {before + BARE_NUMBER + after!r}",
        "choose a template that keeps numbers apart",
    )
    _refuse(
        [n for n, one, pieces in rows if encoder.unk_id in [one.ids[piece] for piece in pieces]],
        f"have no token in the tokenizer of {model.name}",
        "choose numbers that it knows",
    )
    if digits == "single":
        _refuse(
            [number for number, _, pieces in rows if len(pieces) > 1],
            f"are not one token for {model.name}",
            "choose numbers that all are, or read states with digits='last'",
        )
    return sequences_by_length(
        token_ids=[one.ids for one in encoded],
        positions={"n": [pieces[-1] for pieces in spelled]},
        variables={"n": numbers, "pieces": [len(pieces) for pieces in spelled]},
        texts=texts,
    )


def _refuse(numbers: Sequence[int], why: str, remedy: str) -> None:
    if numbers:
        raise MechnumError(f"the numbers {some(numbers)} {why}: {remedy}")
