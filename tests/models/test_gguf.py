from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from mechnum.errors import MechnumError
from mechnum.models.gguf import convert, gguf_folder
from mechnum.models.gguf_config import llama3_scaling
from tests.models.gguf_files import TOKENS, tiny_llama, write_gguf

IDS = torch.tensor([[1, 5, 12, 7, 13, 2, 16, 20, 21, 3]])
Kind = gguf.GGMLQuantizationType


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHNUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(IDS).logits


def loaded(folder: Path) -> torch.nn.Module:
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert next(model.parameters()).dtype == torch.float32
    return model.eval()


SHAPES: dict[str, dict[str, Any]] = {
    "grouped": {},
    "ungrouped": {"num_key_value_heads": 4},
    "tied": {"tie_word_embeddings": True},
    "wide heads": {"head_dim": 32},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_the_written_model(tmp_path: Path, shape: str) -> None:
    model = tiny_llama(**SHAPES[shape])
    keys = {"llama.attention.key_length": 32, "llama.attention.value_length": 32}
    path = write_gguf(tmp_path / "m.gguf", model, keys=keys if shape == "wide heads" else {})
    torch.testing.assert_close(logits(loaded(gguf_folder(path))), logits(model), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1]
)
def test_every_quantised_value_is_kept_exactly(tmp_path: Path, kind: Kind) -> None:
    model = tiny_llama()
    path = write_gguf(tmp_path / "m.gguf", model, kind)  # the model gets the rounded values
    found = loaded(gguf_folder(path)).state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(found[name], weight), name


def test_equals_the_reader_of_transformers(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_llama(), Kind.Q4_1)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name).eval()
    assert torch.equal(logits(loaded(gguf_folder(path))), logits(theirs))


def test_linear_rope_scaling(tmp_path: Path) -> None:
    model = tiny_llama(rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0})
    keys = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    path = write_gguf(tmp_path / "m.gguf", model, keys=keys)
    torch.testing.assert_close(logits(loaded(gguf_folder(path))), logits(model), rtol=0, atol=1e-5)


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def rope_factors(model: torch.nn.Module) -> np.ndarray:
    config: Any = model.config
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = config.rope_parameters["rope_theta"] ** (
        -np.arange(0, config.head_dim, 2) / config.head_dim
    )
    return (plain / scaled.numpy()).astype(np.float32)


@pytest.mark.parametrize(
    "changes", [{}, {"factor": 32.0}, {"low_freq_factor": 2.0, "high_freq_factor": 8.0}]
)
@pytest.mark.parametrize("d_head", [64, 128])
def test_llama3_rope_scaling(tmp_path: Path, d_head: int, changes: dict[str, float]) -> None:
    model = tiny_llama(head_dim=d_head, rope_parameters=LLAMA3 | changes)
    keys = {"llama.attention.key_length": d_head, "llama.attention.value_length": d_head}
    path = write_gguf(
        tmp_path / "m.gguf", model, keys=keys, extra={"rope_freqs.weight": rope_factors(model)}
    )
    folder = gguf_folder(path)
    torch.testing.assert_close(logits(loaded(folder)), logits(model), rtol=0, atol=1e-5)
    if not changes:
        scaling = json.loads((folder / "config.json").read_text())["rope_scaling"]
        assert scaling == {key: LLAMA3[key] for key in LLAMA3 if key != "rope_theta"}


@pytest.mark.parametrize(
    "factors",
    [
        np.linspace(1, 8, 32),
        np.array([1.0] * 31 + [0.0]),
        np.array([1.0] * 31 + [8.0]),
        np.full(32, np.nan),
        np.ones(7),
    ],
)
def test_rope_factors_of_another_form_are_refused(factors: np.ndarray) -> None:
    with pytest.raises(MechnumError, match="not of the llama3 form"):
        llama3_scaling(500000.0, 64, factors.astype(np.float32))


def test_a_second_call_finds_the_folder_by_content(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_llama())
    folder = gguf_folder(path)
    written = (folder / "model.safetensors").stat()
    renamed = path.rename(tmp_path / "other name.gguf")
    assert gguf_folder(renamed) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written.st_mtime_ns
    other = write_gguf(tmp_path / "m.gguf", tiny_llama(), Kind.Q8_0)
    assert gguf_folder(other) != folder


def test_the_weights_are_as_readable_as_the_config(tmp_path: Path) -> None:
    folder = gguf_folder(write_gguf(tmp_path / "m.gguf", tiny_llama()))
    modes = {path.stat().st_mode for path in folder.iterdir()}
    assert len(modes) == 1


def test_without_a_tokenizer_the_folder_has_none(tmp_path: Path) -> None:
    folder = gguf_folder(write_gguf(tmp_path / "m.gguf", tiny_llama(), tokenizer=False))
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_the_tokenizer_is_loaded_from_the_folder(tmp_path: Path) -> None:
    folder = gguf_folder(write_gguf(tmp_path / "m.gguf", tiny_llama()))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("47").input_ids == [TOKENS.index("4"), TOKENS.index("7")]
    assert tokenizer.bos_token == "<|start|>"
    assert len(tokenizer) == len(TOKENS)


# Bad files


def refused(path: Path, cache: Path, match: str) -> None:
    with pytest.raises(MechnumError, match=match) as caught:
        gguf_folder(path)
    message = str(caught.value)
    assert "\n" not in message
    assert ": " in message
    assert not list(cache.glob("gguf/[!.]*"))
    assert not list(cache.glob("gguf/.*.part"))


def test_cut_short_anywhere(tmp_path: Path, cache: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", tiny_llama(), Kind.Q4_1).read_bytes()
    reader = gguf.GGUFReader(tmp_path / "whole.gguf")
    first = min(tensor.data_offset for tensor in reader.tensors)
    cut = tmp_path / "cut.gguf"
    for length in [*range(4, first, 41), first - 1, first, first + 1, len(whole) // 2]:
        cut.write_bytes(whole[:length])
        refused(cut, cache, "is cut short")
    last = max(tensor.data_offset + tensor.n_bytes for tensor in reader.tensors)
    cut.write_bytes(whole[: last - 1])
    refused(cut, cache, "is cut short")


def test_flipped_bits_are_one_line_or_load(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "whole.gguf", tiny_llama())
    whole = path.read_bytes()
    first = min(tensor.data_offset for tensor in gguf.GGUFReader(path).tensors)
    random = np.random.default_rng(0)
    for number, position in enumerate(random.integers(4, first, 60)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        (folder := tmp_path / str(number)).mkdir()
        message = "a line"
        try:
            convert(path, folder)
        except MechnumError as error:
            message = str(error)
        assert "\n" not in message


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04" + bytes(100)])
def test_not_a_gguf_file(tmp_path: Path, cache: Path, content: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    refused(tmp_path / "m.gguf", cache, "is not a GGUF file")


def test_no_file(tmp_path: Path, cache: Path) -> None:
    refused(tmp_path / "m.gguf", cache, "No such file")
    refused(tmp_path, cache, "Is a directory")


@pytest.mark.parametrize(
    "saver",
    ["safetensors.numpy.save_file", "transformers.PreTrainedTokenizerFast.save_pretrained"],
)
def test_a_full_disk_is_one_line(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, saver: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise Exception("No space left on device (os error 28)")

    path = write_gguf(tmp_path / "m.gguf", tiny_llama())
    monkeypatch.setattr(saver, fail)
    refused(path, cache, "No space left on device.*make room")


def test_another_architecture_is_refused_by_name(tmp_path: Path, cache: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_llama(), architecture="qwen2")
    refused(path, cache, "'qwen2'.*'llama'")


def test_a_quantisation_that_cannot_be_read(tmp_path: Path, cache: Path) -> None:
    integers = {"output.weight": np.zeros((len(TOKENS), 64), np.int32)}
    path = write_gguf(
        tmp_path / "m.gguf", tiny_llama(), leave_out=["output.weight"], extra=integers
    )
    refused(path, cache, "quantisation I32 of output.weight")

    path = write_gguf(tmp_path / "m.gguf", tiny_llama())
    content = bytearray(path.read_bytes())
    name = b"output_norm.weight"
    kind = content.index(name) + len(name) + 4 + 8  # after the number of dimensions and the size
    content[kind : kind + 4] = (99).to_bytes(4, "little")
    path.write_bytes(content)
    refused(path, cache, r"\(99 is not.*another quantisation")


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"llama.expert_count": 8}, "llama.expert_count = 8"),
        ({"llama.attention.sliding_window": 32}, "sliding_window = 32"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count = 8 is not the head width 16"),
        ({"llama.rope.scaling.type": "yarn"}, "'yarn'"),
        ({"llama.block_count": None}, "llama.block_count is missing"),
        ({"llama.attention.head_count": 0}, "head_count = 0 is not one positive number"),
        ({"llama.attention.head_count_kv": [2, 2]}, r"head_count_kv = \[2, 2\] is not one"),
        ({"llama.feed_forward_length": 97}, r"shape \(96, 64\).*\(97, 64\)"),
        ({"llama.block_count": 3}, "lacks the tensor blk.2.attn_norm.weight"),
        ({"llama.block_count": 1}, "tensor blk.1.attn_k.weight, which a plain Llama does not"),
        ({"tokenizer.ggml.model": "t5"}, "'t5'"),
        ({"tokenizer.ggml.pre": "qwen2"}, "'qwen2'.*smollm"),
        ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokenizer.ggml.merges": ["x y"]}, "tokenizer of the GGUF file is damaged"),
        ({"tokenizer.ggml.bos_token_id": 999}, "tokenizer of the GGUF file is damaged"),
    ],
)
def test_what_a_plain_llama_does_not_have_is_refused(
    tmp_path: Path, cache: Path, keys: dict[str, Any], match: str
) -> None:
    refused(write_gguf(tmp_path / "m.gguf", tiny_llama(), keys=keys), cache, match)


def test_experts_set_to_zero_are_none(tmp_path: Path) -> None:
    keys = {"llama.expert_count": 0, "llama.expert_used_count": 0}
    assert gguf_folder(write_gguf(tmp_path / "m.gguf", tiny_llama(), keys=keys)).is_dir()


@pytest.mark.parametrize("name", ["token_embd.weight", "blk.0.attn_q.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, cache: Path, name: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_llama(), leave_out=[name])
    refused(path, cache, f"lacks the tensor {name}")


def test_an_unknown_tensor_is_named(tmp_path: Path, cache: Path) -> None:
    bias = {"blk.0.attn_q.bias": np.zeros(64, np.float32)}
    path = write_gguf(tmp_path / "m.gguf", tiny_llama(), extra=bias)
    refused(path, cache, "blk.0.attn_q.bias")
