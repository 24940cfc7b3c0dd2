"""Files are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import pytest

from mechnum.errors import MechnumError
from mechnum.files import check_writable, replacing


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "circuit.json"
    path.write_text("old")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_checked_without_being_made_or_touched(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(MechnumError, match="file is a file: give a folder as out"):
        check_writable(tmp_path / "file" / "b")
    with pytest.raises(MechnumError, match="/proc cannot be written"):
        check_writable("/proc/a")


def test_folders_are_made(tmp_path):
    with replacing(tmp_path / "a" / "b" / "file.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a" / "b" / "file.txt").read_text() == "new"


def test_places_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(MechnumError, match=r"cannot write .*: give a"),
        replacing(tmp_path / "file" / "report.html"),
    ):
        pass
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(MechnumError, match=r"cannot write .*: give a"),
        replacing(tmp_path / "folder") as temporary,
    ):
        temporary.write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
