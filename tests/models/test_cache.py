from __future__ import annotations

import multiprocessing
import os
import stat
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from mechnum.errors import MechnumError
from mechnum.models.cache import build_once, cache_root


def test_the_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MECHNUM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "mechnum"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "mechnum"
    monkeypatch.setenv("MECHNUM_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


def test_builds_once(tmp_path: Path) -> None:
    calls = []

    def build(part: Path) -> None:
        calls.append(part)
        (part / "file").write_text("whole")

    folder = tmp_path / "deep" / "result"
    assert build_once(folder, build) == folder
    assert build_once(folder, build) == folder
    assert len(calls) == 1
    assert (folder / "file").read_text() == "whole"
    assert visible(folder.parent) == ["result"]


@pytest.mark.parametrize("error", [MechnumError("no: do"), KeyboardInterrupt(), ValueError()])
def test_a_failed_build_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def build(part: Path) -> None:
        (part / "file").write_text("half")
        raise error

    with pytest.raises(type(error)):
        build_once(tmp_path / "result", build)
    assert visible(tmp_path) == []
    assert not list(tmp_path.glob(".*.part"))


# Forked, since a fresh interpreter takes seconds to import the package.
needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork"
)


def _build_and_hang(folder: Path, started: Connection) -> None:
    def build(part: Path) -> None:
        (part / "file").write_text("half")
        started.send(True)
        time.sleep(60)

    build_once(folder, build)


@needs_fork
def test_a_killed_build_is_absent_and_the_next_one_works(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_build_and_hang, args=(folder, there))
    process.start()
    assert here.recv()
    process.kill()
    process.join()
    assert not folder.exists()

    def build(part: Path) -> None:
        assert list(part.iterdir()) == []
        (part / "other").write_text("whole")

    build_once(folder, build)
    assert visible(folder) == ["other"]
    assert not list(tmp_path.glob(".*.part"))


def _build_slowly(folder: Path, log: Path) -> None:
    def build(part: Path) -> None:
        with log.open("a") as file:
            file.write("x")
        (part / "file").write_text("first half, ")
        time.sleep(0.3)
        with (part / "file").open("a") as file:
            file.write("second half")

    assert build_once(folder, build) == folder
    assert (folder / "file").read_text() == "first half, second half"


@needs_fork
def test_processes_at_once_build_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    arguments = (tmp_path / "result", tmp_path / "log")
    processes = [context.Process(target=_build_slowly, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert (tmp_path / "log").read_text() == "x"


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MechnumError, match=r"cannot be written \(.+\): .*MECHNUM_CACHE") as caught:
        build_once(tmp_path / "file" / "result", lambda part: None)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_without_permission_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(MechnumError, match="Permission denied"):
            build_once(tmp_path / "result", lambda part: None)
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    def build(part: Path) -> None:
        (part / "file").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(MechnumError, match=r"No space left on device.*make room"):
        build_once(tmp_path / "result", build)
    assert visible(tmp_path) == []
    assert not list(tmp_path.glob(".*.part"))


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
