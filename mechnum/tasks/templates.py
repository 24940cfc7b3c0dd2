"""Prompt templates: the words around the operands, and where the operands stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

# The same for tasks other than addition, which the paper has for GPT-J alone; Pythia's addition
# begins with the same words on one line.
FAMILY_INSTRUCTIONS: Mapping[str, str] = MappingProxyType(
    {"gptj": "Output ONLY a number.\n", "gpt_neox": "Output ONLY a number. "}
)

Span = tuple[int, int]


@dataclass(frozen=True)
class Filled:
    """A prompt as text.

    Attributes:
        spans: where the operands stand, and with two of them the operator ("op"), in their order:
            first character and one past the last.
    """

    text: str
    spans: Mapping[str, Span]


@dataclass(frozen=True)
class Template:
    """Text with the operands in it, each once: `{a}+{b}=`, `{a}-23=`.

    Attributes:
        operands: their names, in order.
        literals: the text before, between and after them.
    """

    operands: tuple[str, ...]
    literals: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, operands: tuple[str, ...] = ("a", "b")) -> Template:
        """Reads `{a}+{b}=` and the like.

        Raises:
            MechnumError: not each operand once and in this order, or no text of its own (other
                than digits) between them and after the last: the numbers would run into each other.
        """
        example = _example(operands)
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise MechnumError(
                f"the template {text!r} cannot be read ({error}): write it like {example!r}"
            ) from None
        fields, literals, plain = [], [""], True
        for literal, field, spec, conversion in parts:
            literals[-1] += literal
            if field is not None:
                fields.append(field)
                literals.append("")
                plain = plain and not spec and not conversion
        if tuple(fields) != operands or not plain:
            wanted = " and then ".join(f"{{{operand}}} once" for operand in operands)
            raise MechnumError(
                f"the template {text!r} needs {wanted}, and no other fields: write it like "
                f"{example!r}"
            )
        before, *inner = literals
        touching = before[-1:] + "".join(text[:1] + text[-1:] for text in inner[:-1])
        touching += inner[-1][:1]
        if not all(text.strip() for text in inner) or any(c.isdigit() for c in touching):
            raise MechnumError(
                f"the template {text!r} does not set the numbers apart: put text other than "
                f"digits around each of them, like {example!r}"
            )
        return cls(operands, tuple(literals))

    def fill(self, numbers: Sequence[int], header: str = "") -> Filled:
        """The prompt for these operands, with `header` in front."""
        text = header + self.literals[0]
        spans: dict[str, Span] = {}
        last = len(self.operands) - 1
        for place, (name, number) in enumerate(zip(self.operands, numbers, strict=True)):
            spans[name] = (len(text), len(text) + len(str(number)))
            text += str(number)
            literal = self.literals[place + 1]
            if place < last:
                first = len(text) + len(literal) - len(literal.lstrip())
                spans["op"] = (first, len(text) + len(literal.rstrip()))
            text += literal
        return Filled(text, MappingProxyType(spans))


def _example(operands: tuple[str, ...]) -> str:
    """What a template of these operands looks like, for messages."""
    fields = [f"{{{operand}}}" for operand in operands]
    return "+".join(fields) + "=" if len(fields) > 1 else f"{fields[0]}-23="


def addition_template(model: Model) -> str:
    """The template that the model names itself, else the one of its family."""
    return model.template or FAMILY_TEMPLATES.get(model.spec.family, BARE)
