"""`mechnum fourier` prints and writes what the library measures, and refuses in one line."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.fourier import residue_probe, spectrum, state_rows
from mechnum.report import read_netcdf

from .running import runner

QUICK = ("--draws", "49", "--permutations", "39", "-q")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_prints_the_strongest_and_writes_all(run, tmp_path):
    code, out, err = run("fourier", "adder-gptj", *QUICK, "--top", "4", "--out", "there")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "report.html",
        "results.nc",
    ]
    found = read_netcdf(tmp_path / "there" / "results.nc")
    rows = state_rows(mn.load("adder-gptj"), range(100))
    np.testing.assert_allclose(found["spectrum"]["share"], spectrum(rows)["share"], rtol=1e-3)
    np.testing.assert_allclose(
        found["residues"]["kappa"], residue_probe(rows, permutations=1)["kappa"], atol=0.02
    )
    assert set(found["amplitudes"]["period"].values) == {2, 5, 10, 100}
    periods = [line.split()[0] for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert set(periods) == {"100", "10", "5", "2"}
    assert "n mod 10 (κ = 1.00" in out
    assert "written: there/report.html and there/results.nc" in out
    html = (tmp_path / "there" / "report.html").read_text(encoding="utf-8")
    assert "mechnum fourier adder-gptj --draws 49" in html


def test_options_reach_the_measurement(run, tmp_path):
    (tmp_path / "counts.csv").write_text(
        "number,count\n" + "".join(f"{n},{9 if n % 10 else 90}\n" for n in range(30)),
        encoding="utf-8",
    )
    code, _, err = run(
        "fourier", "adder-gptj", *QUICK, "--of", "unembedding", "--range", "10-29", "--null",
        "gaussian", "--periods", "2,3.5", "--moduli", "2,4", "--counts", "counts.csv",
        "--seed", "3",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert found.attrs["of"] == "unembedding"
    assert found.attrs["null"] == "gaussian"
    assert (found.attrs["first"], found.attrs["n_numbers"], found.attrs["seed"]) == (10, 20, 3)
    assert found["amplitudes"]["period"].values.tolist() == [2, 3.5]
    assert found["residues"]["modulus"].values.tolist() == [2, 4]
    assert float(found["counts"]["share"].sel(frequency=2)) > 0.1


def test_a_modular_net_has_all_its_numbers(run, tmp_path):
    code, out, err = run("fourier", "clock-113", *QUICK, "--of", "embedding")
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert found.attrs["n_numbers"] == 113
    assert "Embedding of clock-113" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "190-230"], "have no token in the tokenizer of adder-gptj"),
        (["--range", "3-4"], "2 numbers have no spectrum"),
        (["--range", "x"], "'x' is not a range of numbers"),
        (["--periods", "1.25"], "a period of 1.25 is the same as period 5"),
        (["--periods", "two"], "--periods 'two' is not a list of numbers"),
        (["--moduli", "2.5"], "--moduli '2.5' is not a list of numbers"),
        (["--moduli", "1"], "give whole numbers of 2 or more"),
        (["--template", "{a}"], "needs {n} once"),
        (["--counts", "none.csv"], "none.csv cannot be read"),
        (["--seed", "-1"], "the seed is -1: give a whole number"),
        (["--of", "resid_mid"], "resid_mid does not exist in a parallel block"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run("fourier", "adder-gptj", *QUICK, *options)
    assert (code, out) == (2, "")
    assert err.startswith("mechnum: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_counts_must_know_every_number(run, tmp_path):
    (tmp_path / "few.csv").write_text("number,count\n1,2\n", encoding="utf-8")
    code, _, err = run("fourier", "adder-gptj", *QUICK, "--counts", "few.csv")
    assert code == 2
    assert "the counts say nothing of 0, 2, 3, 4, 5, … (99)" in err
