from __future__ import annotations

import pytest
from typer.testing import CliRunner

from mechnum.cli import numbers as command
from mechnum.cli.app import app
from mechnum.errors import MechnumError
from tests.tasks.small_tokenizers import gpt2_like


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(command, "load_tokenizer", lambda name: gpt2_like())


def run(*arguments):
    result = CliRunner().invoke(app, ["numbers", "gpt2-like", *arguments])
    if result.exception is not None:
        raise result.exception
    return [line.split() for line in result.output.splitlines()]


@pytest.mark.usefixtures("model")
def test_each_place_has_a_line():
    assert run("--range", "0-600") == [
        ["place", "one", "token", "of", "not", "one", "token"],
        ["bare", "600", "601", "521"],
        ["after", "a", "space", "399", "601", "362,", "400,", "401,", "402,", "403,", "…", "(202)"],
        ["after", "'1+1='", "600", "601", "521"],
    ]


@pytest.mark.usefixtures("model")
def test_every_number_has_a_line():
    lines = run("--range", "519-521", "--every")
    assert lines[0] == ["number", "bare", "spaced", "context"]
    assert [line[0] for line in lines[1:]] == ["519", "520", "521"]


@pytest.mark.usefixtures("model")
def test_prefix_whose_tokens_change_is_named():
    lines = run("--range", "0-9", "--prefix", "= ")
    assert " ".join(lines[-1]) == (
        "not a continuation of '= ', whose tokens change: 0, 1, 2, 3, 4, … (10)"
    )


@pytest.mark.usefixtures("model")
def test_bad_range_is_refused():
    with pytest.raises(MechnumError, match="the range 9-3 is empty"):
        run("--range", "9-3")
