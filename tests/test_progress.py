from __future__ import annotations

import io
import sys

import pytest

from mechnum.cli.progress import bars
from mechnum.progress import reported_to, tell, track, working


@pytest.fixture
def told():
    heard: list[tuple[str, int, int]] = []
    with reported_to(lambda *step: heard.append(step)):
        yield heard


def test_track_tells_each_item(told):
    assert list(track("ab", "letters")) == ["a", "b"]
    assert told == [("letters", 0, 2), ("letters", 1, 2), ("letters", 2, 2)]


def test_track_ends_when_the_loop_is_left(told):
    for _ in track(range(9), "numbers"):
        break
    assert told == [("numbers", 0, 9), ("numbers", 9, 9)]


def test_track_without_items(told):
    assert list(track([], "nothing")) == []
    assert told == [("nothing", 0, 0)]


def test_track_counts_what_has_no_length(told):
    assert list(track(iter("ab"), "letters", total=2)) == ["a", "b"]
    assert told[-1] == ("letters", 2, 2)
    with pytest.raises(TypeError, match="total"):
        next(track(iter("ab"), "letters"))


def test_working_ends_on_an_error(told):
    with pytest.raises(ZeroDivisionError), working("dividing"):
        raise ZeroDivisionError
    assert told == [("dividing", 0, 1), ("dividing", 1, 1)]


def test_nobody_listens():
    assert list(track("ab", "letters")) == ["a", "b"]
    tell("work", 1, 2)


def test_listening_ends_with_the_block(told):
    inner: list[str] = []
    with reported_to(lambda what, *_: inner.append(what)):
        tell("inside", 1, 1)
    tell("outside", 1, 1)
    assert inner == ["inside"]
    assert told == [("outside", 1, 1)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "drawn"),
    [(Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)],
)
def test_bars_are_drawn_on_a_terminal_only(monkeypatch, capsys, stream, quiet, drawn):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with bars(quiet):
        for _ in track(range(3), "counting"):
            pass
        with working("thinking"):
            pass
    assert ("counting" in stream.getvalue()) is drawn
    assert capsys.readouterr().out == ""
