"""`mechnum similarity`: places after @, and what it refuses."""

from __future__ import annotations

import pytest

from mechnum.cli.similarity import _split
from mechnum.report import read_netcdf
from tests.cli.running import runner


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_what_follows_an_at_sign_is_a_place_or_part_of_the_name():
    assert _split("smollm2@8") == ("smollm2", "layer 8")
    assert _split("a/b@unembedding") == ("a/b", "unembedding")
    assert _split("a@b") == ("a@b", None)
    assert _split("adder-gptj") == ("adder-gptj", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adder-gptj@9"], "adder-gptj has no place 'layer 9': use one of embedding, layer 0"),
        (["adder-gptj", "adder-gptj"], "adder-gptj, embedding is there twice: name another place"),
        (["adder-gptj", "--range", "197-300"], "no 4 numbers in a row are read"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(run, tmp_path, arguments, message):
    code, out, err = run("similarity", "-q", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_adders_write_their_page(run, tmp_path):
    code, out, err = run(
        "similarity", "-q", "adder-gptj", "adder-scratch", "--range", "0-40", "--draws", "19",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "adder-gptj · adder-scratch"
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert set(found.children) == {"pairs", "map", "transfer", "published"}
    assert found.attrs["command"].startswith("mechnum similarity -q adder-gptj adder-scratch")
