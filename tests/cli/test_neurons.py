"""`mechnum neurons` writes its report, and refuses bad input in one line."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.cli.running import runner


@pytest.fixture
def run(monkeypatch, capsys):
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_a_report_of_the_bundled_adder(run, tmp_path):
    options = ["--range", "0-14", "--neurons", "4", "--pairs", "16", "--top", "2", "--quiet"]
    code, out, err = run("neurons", "adder-gptj", *options, "--out", str(tmp_path))
    assert code == 0, err
    names = {"report.html", "results.nc", "neurons.csv", "neurons.parquet"}
    assert {path.name for path in tmp_path.iterdir()} == names
    frame = pd.read_parquet(tmp_path / "neurons.parquet")
    assert len(frame) == 4
    for row in frame.head(2).to_dict("records"):
        assert f"{row['layer']}.{row['neuron']}" in out
    assert "The first 2 of 4" in out
    assert str(tmp_path / "neurons.parquet") in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--periods", "ten"), "--periods 'ten' is not a list of numbers: write it like 2,5,10"),
        (("--periods", "1.5"), "on integers a period of 1.5 is the same as"),
        (("--range", "0-1"), "different prompts cannot fix"),
        (("--pairs", "1"), "pair"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, tmp_path, options, message):
    where = tmp_path / "report"
    given = options if "--range" in options else ("--range", "0-9", *options)
    code, _, err = run("neurons", "adder-gptj", "--quiet", *given, "--out", str(where))
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not where.exists()
