"""Texts of others: plain text, JSON lines, and text sets of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.tasks.contexts.texts import Context, has_number


def read_texts(
    path: str | Path, name: str | None = None, key: str = "text", limit: int = 10_000
) -> Context:
    """The texts of a file that have numbers in them: one a line, or one a line of JSON.

    Args:
        path: a .jsonl file has an object a line; any other is plain text in UTF-8.
        name: of the context; the file's without it.
        key: which string of each object is the text.
        limit: of texts, from the start of the file.

    Raises:
        MechnumError: a file that is missing, no text, no JSON, without the key, or without numbers.
    """
    path = Path(path)
    try:
        # Some editors begin a file with a mark, which is no part of its text.
        with path.open(encoding="utf-8-sig") as lines:
            texts = _json_texts(path, lines, key) if path.suffix == ".jsonl" else lines
            found = _with_numbers(texts, limit)
    except OSError as error:
        raise MechnumError(f"cannot read {path} ({error.strerror}): give a text file") from None
    except UnicodeDecodeError:
        raise MechnumError(f"{path} is no text in UTF-8: convert it, or give another") from None
    return Context(name or path.stem, found)


def hub_texts(
    dataset: str,
    key: str = "text",
    split: str = "train",
    config: str | None = None,
    name: str | None = None,
    limit: int = 10_000,
) -> Context:
    """The texts of a Hugging Face text set that have numbers in them, streamed.

    Štefánik et al. 2026 (arXiv 2510.26285) read numbers in recipes, mathematical problems, news
    and medical codes, 10,000 texts of them for training.

    Args:
        dataset: its id, or a local folder in one of the formats that `datasets` reads.
        key, name, limit: as in `read_texts`.

    Raises:
        MechnumError: the library `datasets` is not there, the set cannot be reached, or its rows
            have no such text.
    """
    try:
        # It comes with TransformerLens, and takes seconds to import.
        library: Any = import_module("datasets")
    except ImportError:
        raise MechnumError(
            "the library `datasets` is not installed: `pip install datasets`, or use read_texts"
        ) from None
    try:
        rows = library.load_dataset(dataset, config, split=split, streaming=True)
        found = _with_numbers(_row_texts(dataset, rows, key), limit)
    except MechnumError:
        raise
    except Exception as error:  # whatever the network, the formats and the library come up with
        reason = " ".join(str(error).split())[:200]
        raise MechnumError(
            f"cannot read the text set {dataset!r} ({type(error).__name__}: {reason}): check its "
            "id, split and the network, or use read_texts on a file"
        ) from error
    return Context(name or dataset.rstrip("/").rpartition("/")[2], found)


def _with_numbers(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    stripped = (text.strip() for text in texts)
    return tuple(islice(filter(has_number, stripped), positive_integer("limit", limit)))


def _json_texts(path: Path, lines: Iterable[str], key: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise MechnumError(
                f"line {number} of {path} is no JSON ({error.msg}): give one object a line"
            ) from None
        yield _text_of(row, key, f"line {number} of {path}")


def _row_texts(dataset: str, rows: Iterable[Any], key: str) -> Iterator[str]:
    for number, row in enumerate(rows, 1):
        yield _text_of(row, key, f"row {number} of {dataset!r}")


def _text_of(row: Any, key: str, where: str) -> str:
    if not isinstance(row, dict):
        raise MechnumError(f'{where} is no object with keys: write it like {{"{key}": ...}}')
    if key not in row:
        known = ", ".join(map(repr, row))
        raise MechnumError(f"{where} has no {key!r}: say which key has the text (it has {known})")
    if not isinstance(row[key], str):
        raise MechnumError(f"{where} has no text as {key!r}: give a string, or another key")
    return row[key]
