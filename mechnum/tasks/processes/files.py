"""Processes by name, and from TOML files.

```toml
name = "golden mean"
tokens = ["0", "1"]                       # optional names
states = ["A", "B"]
start = [0.5, 0.5]                        # optional, the stationary law without it
matrices = [                              # one for each token: P(emit it and go to j | i)
    [[0.0, 0.5], [0.0, 0.0]],
    [[0.5, 0.0], [1.0, 0.0]],
]
```
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from mechnum.errors import MechnumError
from mechnum.tasks.processes.addition import carry
from mechnum.tasks.processes.library import even, golden_mean, iid, mess3, rrxor, z1r
from mechnum.tasks.processes.process import Process, from_matrices
from mechnum.toml_files import read_toml

# Each with the names of its numbers, all of which have defaults.
_NAMED: dict[str, tuple[Callable[..., Process], tuple[str, ...]]] = {
    "mess3": (mess3, ("x", "a")),
    "rrxor": (rrxor, ()),
    "z1r": (z1r, ()),
    "golden_mean": (golden_mean, ("p",)),
    "even": (even, ("p",)),
    "carry": (carry, ("base", "hidden")),
}
NAMES = (*_NAMED, "iid")


class ProcessFile(BaseModel):
    """The contents of a process' TOML file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    matrices: list[list[list[FiniteFloat]]]
    name: str | None = None
    tokens: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    start: tuple[FiniteFloat, ...] | None = None


def find_process(text: str) -> Process:
    """The process of that name, such as "rrxor", "mess3:0.15,0.6", "iid:0.2,0.8", or of a file.

    Raises:
        MechnumError: on unknown names and wrong numbers, and as `read_process`.
    """
    if text.endswith(".toml"):
        return read_process(text)
    name, _, given = text.partition(":")
    try:
        numbers = [float(part) for part in given.split(",")] if given else []
    except ValueError:
        raise MechnumError(
            f"{text}: {given!r} are no numbers: write them as in mess3:0.05,0.85"
        ) from None
    if name == "iid":
        return iid(numbers) if numbers else iid()
    if name not in _NAMED:
        raise MechnumError(
            f"there is no process {name!r}: choose from {', '.join(NAMES)}, or give a .toml file"
        )
    make, parameters = _NAMED[name]
    if len(numbers) > len(parameters):
        takes = ", ".join(parameters) or "no numbers"
        raise MechnumError(f"{text} has {len(numbers)} numbers: {name} takes {takes}")
    values = dict(zip(parameters, numbers, strict=False))
    return make(
        **{
            key: int(value) if key == "base" and value.is_integer() else value
            for key, value in values.items()
        }
    )


def read_process(path: str | Path) -> Process:
    """The process in a TOML file.

    Raises:
        MechnumError: on a file that is missing, no TOML, or has unknown or missing keys, and on
            matrices that `from_matrices` refuses.
    """
    content = read_toml(path)
    try:
        file = ProcessFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MechnumError(f"{path}: {where}: {first['msg']}: correct the file") from None
    return from_matrices(
        file.matrices, file.name or Path(path).stem, file.tokens, file.states, file.start
    )
