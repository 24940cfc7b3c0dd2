"""What circuit files say of an edge, and refusals of files that say something else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from mechnum.errors import MechnumError
from mechnum.patching.circuit.circuit import Circuit
from mechnum.patching.edges import Edge

Attributes = dict[str, int | float | str]


class EdgeRecord(BaseModel):
    """One edge of a circuit.

    Attributes:
        edge: as `head 0.1 -> q 2.0`.
        score: None where the circuit has none.
        low, high: interval of the score; None where the circuit has none.
    """

    model_config = ConfigDict(strict=True)

    edge: str
    score: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None


Content = TypeVar("Content", bound=BaseModel)


def records(circuit: Circuit) -> dict[Edge, EdgeRecord]:
    """Each edge of the circuit with what is known of it, in order.

    An interval that is NaN, as one pair gives, is no interval.

    Raises:
        MechnumError: on a score that is not finite, which no file holds.
    """
    found = {}
    for edge in sorted(circuit.edges):
        score = circuit.scores.get(edge)
        if score is not None and not math.isfinite(score):
            raise MechnumError(f"the score of {edge} is {score}: leave it out of the circuit")
        low, high = circuit.intervals.get(edge, (math.nan, math.nan))
        known = math.isfinite(low) and math.isfinite(high)
        found[edge] = EdgeRecord(
            edge=str(edge),
            score=None if score is None else float(score),
            low=float(low) if known else None,
            high=float(high) if known else None,
        )
    return found


def circuit_of(found: Iterable[EdgeRecord], attrs: Mapping[str, Any]) -> Circuit:
    """The circuit that the records make up; an edge may be there several times.

    Raises:
        MechnumError: on text that names no edge.
    """
    by_edge = {Edge.parse(record.edge): record for record in found}
    return Circuit(
        edges=frozenset(by_edge),
        scores={edge: one.score for edge, one in by_edge.items() if one.score is not None},
        intervals={
            edge: (one.low, one.high)
            for edge, one in by_edge.items()
            if one.low is not None and one.high is not None
        },
        attrs=dict(attrs),
    )


def attributes(circuit: Circuit) -> Attributes:
    """The circuit's attributes as JSON has them.

    Raises:
        MechnumError: on one that is neither text nor a finite number.
    """
    plain: Attributes = {}
    for name, value in circuit.attrs.items():
        if isinstance(value, str):
            plain[name] = value
        elif isinstance(value, Integral):
            plain[name] = int(value)
        elif isinstance(value, Real) and math.isfinite(value):
            plain[name] = float(value)
        else:
            raise MechnumError(
                f"attribute {name!r} of the circuit is {value!r}: use text or a finite number"
            )
    return plain


def json_text(content: Mapping[str, Any]) -> str:
    """The content as JSON that every reader takes: no NaN and no infinities."""
    return json.dumps(content, allow_nan=False, ensure_ascii=False)


def checked(kind: type[Content], content: object, path: Path) -> Content:
    """The content as this kind.

    Raises:
        MechnumError: where an entry is missing or is of another type.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        refuse(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def refuse(path: Path, why: str) -> NoReturn:
    """Says in one line why the file is no circuit."""
    raise MechnumError(f"{path} is no file of a circuit ({why}): give one that is whole") from None
