"""Tables of states on disk: safetensors files that are written bit by bit and read in place."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32, Int64

from mechnum.errors import MechnumError
from mechnum.files import replacing

STATES = "states"
_DTYPES = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}
_LENGTH = struct.Struct("<Q")  # How many bytes the header has.


@contextmanager
def new_state_file(
    path: Path,
    shape: tuple[int, int, int],
    columns: Mapping[str, Int64[np.ndarray, " row"]],
    said: Mapping[str, str],
) -> Iterator[Float32[np.ndarray, "layer row d"]]:
    """States to be written, which lie in the file and not in memory.

    safetensors itself writes tensors that are in memory as a whole. The file appears when the block
    ends without an error.

    Args:
        columns: one integer a row each, under its name.
        said: the file's metadata.

    Raises:
        MechnumError: where nothing can be written there.
    """
    header: dict[str, Any] = {"__metadata__": dict(said)}
    offset = 0
    for name, dtype, sizes in [
        (STATES, "F32", shape),
        *((name, "I64", column.shape) for name, column in columns.items()),
    ]:
        end = offset + _DTYPES[dtype].itemsize * int(np.prod(sizes))
        header[name] = {"dtype": dtype, "shape": list(sizes), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    start = _LENGTH.size + len(text)
    with replacing(path) as part:
        with part.open("wb") as file:
            file.write(_LENGTH.pack(len(text)) + text)
            _reserve(file, start + offset)
            for name, column in columns.items():
                file.seek(start + header[name]["data_offsets"][0])
                file.write(column.astype("<i8").tobytes())
        states = np.memmap(part, np.float32, "r+", start, shape)
        yield states
        states.flush()


def read_state_file(
    path: Path,
) -> tuple[
    Float32[np.ndarray, "layer row d"], dict[str, Int64[np.ndarray, " row"]], dict[str, str]
]:
    """States, read from the file when they are used; the columns; and the metadata.

    Raises:
        MechnumError: a file that cannot be read, or is none that `new_state_file` wrote.
    """
    try:
        with path.open("rb") as file:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            start = _LENGTH.size + length
            if start > path.stat().st_size:
                raise ValueError
            header = json.loads(file.read(length))
            said = header.pop("__metadata__")
            found = {
                name: np.memmap(
                    path,
                    _DTYPES[one["dtype"]],
                    "r",
                    start + one["data_offsets"][0],
                    tuple(one["shape"]),
                )
                for name, one in header.items()
            }
        states = found.pop(STATES)
        if states.ndim != 3 or path.stat().st_size != start + _end(header):
            raise ValueError
        return states, {name: np.array(column) for name, column in found.items()}, said
    except OSError as error:
        raise MechnumError(f"cannot read {path} ({error.strerror}): give another file") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        raise MechnumError(
            f"{path} is not a whole file of states: delete it, or give another file"
        ) from None


def _reserve(file: BinaryIO, size: int) -> None:
    """Make the file that large; a disk without the room says so here, not when it is mapped."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def _end(header: Mapping[str, Any]) -> int:
    return max(one["data_offsets"][1] for one in header.values())
