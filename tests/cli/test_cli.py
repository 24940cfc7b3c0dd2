from __future__ import annotations

import json
import subprocess
import sys
import warnings
from contextlib import nullcontext

import pytest

from mechnum.cli import main, trace
from mechnum.cli.app import app
from mechnum.errors import MechnumError
from mechnum.models.load import bundled

from .running import runner

COMMANDS = (
    "trace",
    "patch",
    "paths",
    "circuit",
    "clock",
    "helix",
    "fourier",
    "lens",
    "filter",
    "verify",
    "numbers",
    "models",
    "fetch",
    "train",
)
HEAVY = ("torch", "transformer_lens", "transformers", "numpy", "xarray", "plotly", "rich")


@pytest.fixture
def run(monkeypatch, capsys):
    return runner(monkeypatch, capsys)


@pytest.fixture
def failing(monkeypatch):
    """Makes `mechnum trace` raise what it is given, in place of loading a model."""

    def failing(error: BaseException) -> None:
        def load_model(*_: object) -> None:
            raise error

        monkeypatch.setattr(trace, "load_model", load_model)

    return failing


def test_help_lists_the_commands(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for command in COMMANDS:
        assert f"\n  {command} " in out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"Usage: mechnum {command} " in out


@pytest.mark.parametrize("arguments", [["--help"], ["trace", "--help"], ["--version"], ["bogus"]])
def test_nothing_heavy_is_loaded_before_a_command_runs(arguments):
    code = f"""
import sys
sys.argv = ["mechnum", *{arguments!r}]
from mechnum.cli import main
try:
    main()
except SystemExit:
    print("loaded:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize(
    "arguments",
    [[], ["bogus"], ["trace", "--bogus"], ["trace", "--pairs", "none"], ["trace", "--pairs", "0"]],
)
def test_wrong_usage(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert "Usage: mechnum" in out + err
    assert "Traceback" not in err


def test_refusal_is_one_line_and_code_2(run, failing, tmp_path):
    failing(MechnumError("the model is blue: paint it"))
    code, out, err = run("trace", "--out", str(tmp_path / "new"))
    assert (code, out, err) == (2, "", "mechnum: the model is blue: paint it\n")
    assert list(tmp_path.iterdir()) == []


def test_line_breaks_in_a_refusal_are_taken_out(run, failing):
    failing(MechnumError("the file says 'a\nb': mend it"))
    assert run("trace")[2] == "mechnum: the file says 'a b': mend it\n"


def test_system_errors_are_one_line(run, failing):
    failing(OSError(28, "No space left on device", "/data/report.html"))
    code, _, err = run("trace")
    assert code == 2
    assert err.startswith("mechnum: /data/report.html cannot be read or written (No space left")
    assert err.count("\n") == 1


def test_a_warning_is_one_line_without_a_place_in_the_source(run, monkeypatch, capsys):
    def warned(*_arguments: object) -> None:
        with pytest.warns() as caught:
            warnings.warn("this takes\nlong: take less", stacklevel=1)
        # pytest keeps warnings to itself: write it as Python would.
        sys.stderr.write(warnings.formatwarning(caught[0].message, UserWarning, "there.py", 7))
        raise MechnumError("enough: stop")

    monkeypatch.setattr(trace, "load_model", warned)
    assert run("trace")[2] == "mechnum: this takes long: take less\nmechnum: enough: stop\n"


def test_models_are_listed_with_what_they_score(run):
    code, out, err = run("models")
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert set(rows) == set(bundled())
    for name, folder in bundled().items():
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        # A process has no right answers.
        score = "%" if "heldout_accuracy" in card else f"{card['heldout_loss']:.4g} nats"
        assert score in rows[name]


def test_interrupt(run, failing):
    failing(KeyboardInterrupt())
    assert run("trace") == (130, "", "mechnum: interrupted\n")


def test_own_bugs_keep_their_traceback(monkeypatch, failing):
    failing(ZeroDivisionError())
    monkeypatch.setattr(sys, "argv", ["mechnum", "trace"])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize("arguments", [["--quiet", "trace"], ["trace", "--quiet"], ["trace", "-q"]])
def test_quiet_before_and_after_the_command(monkeypatch, run, failing, arguments):
    seen = []

    def bars(quiet: bool) -> nullcontext[None]:
        seen.append(quiet)
        return nullcontext()

    failing(MechnumError("stop here"))
    monkeypatch.setattr(trace, "bars", bars)
    run(*arguments)
    assert seen == [True]


def test_every_long_command_can_be_quiet():
    for command in app.registered_commands:
        if command.name not in ("models", "circuits"):
            assert command.callback is not None
            assert "quiet" in command.callback.__annotations__


def test_out_is_checked_before_anything_is_computed(run, failing, tmp_path):
    failing(AssertionError("the model was loaded"))
    file = tmp_path / "file"
    file.touch()
    for out in (file, file / "below"):
        code, _, err = run("trace", "--out", str(out))
        assert (code, err) == (2, f"mechnum: {file} is a file: give a folder as out\n")


def test_out_that_cannot_be_written(run, failing):
    failing(AssertionError("the model was loaded"))
    # Nothing can be made there, though permissions allow it to root.
    code, _, err = run("trace", "--out", "/proc/a/b")
    assert code == 2
    assert err.startswith("mechnum: /proc cannot be written (")
    assert err.endswith("): give another folder as out\n")


def test_fetch_of_an_unknown_model(run):
    code, _, err = run("fetch", "gpt-9")
    assert code == 2
    assert (
        err
        == "mechnum: 'gpt-9' cannot be fetched: fetch smollm2 or minilm, or load 'gpt-9' as it is\n"
    )
