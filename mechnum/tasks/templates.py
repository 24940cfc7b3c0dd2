"""Prompt templates: the words around the operands, and where the operands stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from types import MappingProxyType
from typing import TYPE_CHECKING

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.models.model import Model

BARE = "{a}+{b}="

# Kantamneni & Tegmark 2025, released code; families without a published prompt use the bare sum.
FAMILY_TEMPLATES: Mapping[str, str] = MappingProxyType(
    {
        "gptj": "Output ONLY a number.\n{a}+{b}=",
        "gpt_neox": "Output ONLY a number. {a}+{b}=",
        "llama": "The following is a correct addition problem. \n{a}+{b}=",
    }
)

Span = tuple[int, int]


@dataclass(frozen=True)
class Filled:
    """A prompt as text; spans are (first character, one past the last) in it."""

    text: str
    a: Span
    op: Span
    b: Span


@dataclass(frozen=True)
class Template:
    """`before {a} between {b} after`."""

    before: str
    between: str
    after: str

    @classmethod
    def parse(cls, text: str) -> Template:
        """Reads `{a}+{b}=` and the like.

        Raises:
            MechnumError: not exactly one {a} followed by one {b}, or no text of its own (other
                than digits) between them and after {b}: the numbers would run into each other.
        """
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise MechnumError(
                f"the template {text!r} cannot be read ({error}): write it like {BARE!r}"
            ) from None
        fields, literals, plain = [], [""], True
        for literal, field, spec, conversion in parts:
            literals[-1] += literal
            if field is not None:
                fields.append(field)
                literals.append("")
                plain = plain and not spec and not conversion
        if fields != ["a", "b"] or not plain:
            raise MechnumError(
                f"the template {text!r} needs {{a}} once and then {{b}} once, and no other "
                f"fields: write it like {BARE!r}"
            )
        before, between, after = literals
        touching = before[-1:] + between[:1] + between[-1:] + after[:1]
        if not between.strip() or not after.strip() or any(c.isdigit() for c in touching):
            raise MechnumError(
                f"the template {text!r} does not set the numbers apart: put text other than "
                f"digits between {{a}} and {{b}} and after {{b}}, like {BARE!r}"
            )
        return cls(before, between, after)

    def fill(self, a: int, b: int, header: str = "") -> Filled:
        """The prompt for two operands, with `header` in front."""
        a_start = len(header) + len(self.before)
        a_end = a_start + len(str(a))
        op_start = a_end + len(self.between) - len(self.between.lstrip())
        b_start = a_end + len(self.between)
        return Filled(
            text=f"{header}{self.before}{a}{self.between}{b}{self.after}",
            a=(a_start, a_end),
            op=(op_start, a_end + len(self.between.rstrip())),
            b=(b_start, b_start + len(str(b))),
        )


def addition_template(model: Model) -> str:
    """The template that the model names itself, else the one of its family."""
    return model.template or FAMILY_TEMPLATES.get(model.spec.family, BARE)
