"""Results of steps on disk, found again by what they were made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import xarray as xr

import mechnum
import mechnum.circuits
from mechnum.errors import MechnumError
from mechnum.files import replacing
from mechnum.patching.provenance import versions
from mechnum.report import read_netcdf, write_netcdf

# What draws, prints and reads results has no part in them.
_NOT_MEASURING = ("report", "cli")
_READINGS = "readings.py"


@dataclass(frozen=True)
class Kept:
    """A stored result, and the hash of what it was made from."""

    tree: xr.DataTree
    key: str


@dataclass(frozen=True)
class Store:
    """A folder of results.

    Each is a file NAME-HASH.nc, beside NAME-HASH.json, which says what it was made from and which
    bytes it has. The second is written last, so that a result without it is unfinished.
    """

    folder: Path

    def kept(
        self, name: str, made_from: Mapping[str, Any], measure: Callable[[], xr.DataTree]
    ) -> Kept:
        """The result that was made from this; measured, and stored, where there is none yet.

        A file that is damaged counts as none. What comes back has always been read from the file,
        so that it is the same whether it was measured now or before.

        Args:
            made_from: all that decides the result, as JSON.

        Raises:
            MechnumError: where the folder cannot be written, and as `measure`.
        """
        content = json.dumps(made_from, sort_keys=True)
        key = hashlib.sha256(content.encode()).hexdigest()
        data = self.folder / f"{name}-{key[:12]}.nc"
        record = data.with_suffix(".json")
        if (found := _read(data, record, key)) is None:
            write_netcdf(measure(), data)
            said = {"key": key, "sha256": file_digest([data]), "made_from": made_from}
            with replacing(record) as temporary:
                temporary.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
            found = read_netcdf(data)
        return Kept(found, key)


def _read(data: Path, record: Path, key: str) -> xr.DataTree | None:
    """The result, or None where it is missing, unfinished or damaged."""
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
        if said["key"] != key or said["sha256"] != file_digest([data]):
            return None
        return read_netcdf(data)
    except (OSError, ValueError, KeyError, TypeError, MechnumError):
        return None


def file_digest(paths: Iterable[Path]) -> str:
    """SHA-256 of the contents of files, in this order."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while part := file.read(2**20):
                digest.update(part)
    return digest.hexdigest()


@cache
def code_digest() -> str:
    """SHA-256 of the package's version, of its sources that measure, and of its libraries'
    versions."""
    digest = hashlib.sha256(json.dumps([mechnum.__version__, versions()]).encode())
    digest.update(file_digest(_sources()).encode())
    return digest.hexdigest()


def _sources() -> list[Path]:
    # In a working copy the circuits lie beside the package, and are installed within it.
    roots = {Path(str(module.__file__)).resolve().parent for module in (mechnum, mechnum.circuits)}
    found = {path for root in roots for path in root.rglob("*.py")}
    left_out = {root / part for root in roots for part in _NOT_MEASURING}
    return sorted(
        path for path in found if path.name != _READINGS and not left_out & set(path.parents)
    )
