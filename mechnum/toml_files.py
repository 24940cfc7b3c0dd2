"""TOML files that people write: what is wrong in one is said in one line, with a suggestion."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mechnum.errors import MechnumError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

M = TypeVar("M", bound=BaseModel)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The contents of a TOML file.

    Raises:
        MechnumError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MechnumError(f"cannot read {path} ({error.strerror}): give a .toml file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MechnumError(f"{path} is not TOML ({error}): correct it") from None


def toml_value(text: str) -> Any:
    """A value as TOML has it, such as 50, [2, 5] or true; any other text is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def checked(
    kind: type[M],
    values: Mapping[str, Any],
    where: str,
    known: Iterable[str] = (),
    what: str = "key",
) -> M:
    """The values as a pydantic model.

    Args:
        where: the values are, for messages.
        known: keys to suggest instead of unknown ones; by default the model's.
        what: a key is, for messages.

    Raises:
        MechnumError: on unknown and missing keys, and on values that do not fit.
    """
    try:
        # As JSON, since lists are no tuples to a strict model otherwise.
        return kind.model_validate_json(json.dumps(values))
    except TypeError:
        raise MechnumError(f"{where}: give numbers, texts, true, false and lists of them") from None
    except ValidationError as error:
        errors = error.errors()
    # A key with a slip is unknown, and another one missing: the first says more.
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        raise MechnumError(f"{where}: {unknown(what, key, known or kind.model_fields)}")
    if first["type"] == "missing":
        raise MechnumError(f"{where}: {place} is missing: add it")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        raise MechnumError(f"{where}: {message}")
    wanted = message.removeprefix("Input should be ")
    wanted = f"a number {wanted}" if wanted.startswith(("greater", "less")) else wanted
    raise MechnumError(f"{where}: {place} is {first['input']!r}: give {wanted}")


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """What to say of a name that is none of the known ones."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"there is no {what} {name!r}: did you mean {near[0]}?"
    return f"there is no {what} {name!r}: choose from {', '.join(known) or 'nothing'}"
