"""Models by name, folder and file, without a network; and what is refused, in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.load import bundled, load, load_tokenizer
from mechnum.models.wrap import wrap
from tests import fixtures


def in_memory_tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    words = {"<bos>": 0, "<pad>": 1, "+": 2, "=": 3, **{str(n): n + 6 for n in range(50)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d+|[^\d]"), "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<bos>", pad_token="<pad>"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    fixtures.llama().save_pretrained(path)
    return path


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox parallel", "llama tied"])
def test_a_folder_gives_the_model_that_was_saved(architecture, tmp_path):
    model = fixtures.ARCHITECTURES[architecture]()
    model.save_pretrained(tmp_path)
    loaded = mn.load(tmp_path)
    with torch.no_grad():
        expected = model(fixtures.CLEAN).logits[:, -1]
    torch.testing.assert_close(loaded.logits(fixtures.CLEAN), expected, atol=1e-5, rtol=0)
    assert loaded.tokenizer is None
    assert loaded.name == str(tmp_path)


def test_a_folder_with_a_tokenizer(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    in_memory_tokenizer().save_pretrained(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.tokenizer("3+4=")["input_ids"] == [9, 2, 10, 3]
    assert loaded.tl.to_tokens("3+4=", prepend_bos=False).tolist() == [[9, 2, 10, 3]]


def test_a_tokenizer_without_the_weights(folder, tmp_path):
    in_memory_tokenizer().save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path)("3+4=")["input_ids"] == [9, 2, 10, 3]
    assert load_tokenizer("adder-gptj")("3+4=")["input_ids"] == [3, 199, 4, 200]
    assert load_tokenizer(folder) is None
    assert load_tokenizer("clock-113") is None


@pytest.mark.parametrize("name", ["no-such-model", "./nowhere", "nowhere.gguf"])
def test_tokenizers_of_models_that_are_not_there(name):
    with pytest.raises(MechnumError, match=r"is not on this machine|there is no"):
        load_tokenizer(name)


def test_a_damaged_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(MechnumError, match=r"the tokenizer in .* cannot be read"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_that_was_never_on_disk():
    wrapped = wrap(fixtures.llama(), in_memory_tokenizer())
    assert wrapped.tl.to_tokens("3+4=", prepend_bos=False).tolist() == [[9, 2, 10, 3]]
    torch.testing.assert_close(
        wrapped.tl(fixtures.CLEAN).detach()[:, -1],
        wrapped.logits(fixtures.CLEAN),
        atol=1e-5,
        rtol=0,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_precisions(folder, dtype):
    loaded = load(folder, dtype=dtype)
    assert loaded.dtype == getattr(torch, dtype)
    difference = (loaded.logits(fixtures.CLEAN) - load(folder).logits(fixtures.CLEAN)).abs().max()
    assert difference < {"float32": 1e-9, "float64": 1e-5}.get(dtype, 0.1)


def test_fingerprints_tell_models_apart(folder, tmp_path):
    one, again = load(folder), load(folder)
    assert one.fingerprint == again.fingerprint
    fixtures.perturbed(fixtures.llama(), seed=1).save_pretrained(tmp_path)
    assert load(tmp_path).fingerprint != one.fingerprint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such-model", "not on this machine|there is no model"),
        ("EleutherAI/gpt-j-6b", "not on this machine"),
        ("./nowhere", r"there is no file or folder \./nowhere"),
        ("nowhere.gguf", "there is no file or folder"),
        ("a b/c:d", "there is no model|not on this machine"),
    ],
)
def test_models_that_are_not_there(name, message):
    with pytest.raises(MechnumError, match=message) as refused:
        load(name)
    assert "\n" not in str(refused.value)


def _no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _only_pickled_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut_short(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def _not_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weights")


def _broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def _no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _other_architecture(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "gemma2"}))


def _reconfigured(**settings: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **settings}))

    return change


def _broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_weights, "no weights in safetensors"),
        (_only_pickled_weights, "no weights in safetensors"),
        (_cut_short, "are damaged|cannot be read"),
        (_not_safetensors, "are damaged|cannot be read"),
        (_broken_config, "cannot be read as a Hugging Face model"),
        (_no_config, "neither config.json nor net.toml"),
        (_other_architecture, "architecture 'gemma2' is not supported"),
        (_reconfigured(hidden_size="many"), "cannot be read as a Hugging Face model .*many"),
        (
            _reconfigured(intermediate_size=48),
            r"9 weights of .* other shapes .* \(first: model.layers.0.mlp.down_proj.weight, ",
        ),
        (_reconfigured(num_hidden_layers=4), "lacks 9 weights"),
        # transformers would leave the last layer out, and measure another model in silence.
        (_reconfigured(num_hidden_layers=2), r"no place for 9 of .* \(first: model.layers.2."),
        (_broken_tokenizer, "the tokenizer in .* cannot be read"),
    ],
)
def test_damaged_folders_are_refused_in_one_line(folder, tmp_path, damage, message):
    broken = tmp_path / "m"
    shutil.copytree(folder, broken)
    damage(broken)
    before = sorted(path.name for path in broken.iterdir())
    with pytest.raises(MechnumError, match=message) as refused:
        load(broken)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in broken.iterdir()) == before


def test_what_stands_beside_the_blocks_is_no_part_of_the_model(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    beside = {
        "v_head.summary.weight": torch.ones(1, 2),
        "model.layers.0.self_attn.masked_bias": torch.ones(1),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
    }
    save_file({**load_file(file), **beside}, file, {"format": "pt"})
    assert load(tmp_path / "m").fingerprint == load(folder).fingerprint


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(MechnumError, match="is not a model: give a folder"):
        load(tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "warp"}, "device 'warp' is not there"),
        ({"device": "cuda:7"}, "device 'cuda:7' is not there"),
        ({"dtype": "int8"}, "dtype 'int8' is not supported"),
    ],
)
def test_devices_and_precisions_that_are_not_there(folder, given, message):
    with pytest.raises(MechnumError, match=message):
        load(folder, **given)


def test_transformers_settings_come_back(folder):
    from transformers.utils import logging

    logging.set_verbosity_info()
    try:
        load(folder)
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled()
    finally:
        logging.set_verbosity_warning()


@pytest.mark.parametrize("thing", [torch.nn.Linear(2, 2), "text", None])
def test_things_that_are_no_models_are_not_wrapped(thing):
    with pytest.raises(MechnumError, match="cannot wrap a"):
        wrap(thing)


@pytest.mark.parametrize("name", sorted(bundled()))
def test_bundled_models_load_and_are_small(name):
    model = load(name)
    assert model.verification.logit_difference < 1e-4
    assert model.default_task
    size = sum(path.stat().st_size for path in bundled()[name].glob("*.safetensors"))
    assert size < 2 * 10**6


def test_an_unsupported_transformer_lens_is_named(monkeypatch):
    from mechnum.models import tl_version

    monkeypatch.setattr(tl_version, "version", lambda name: "2.16.0")
    with pytest.raises(MechnumError, match=r"TransformerLens 2\.16\.0 is not supported"):
        wrap(fixtures.gpt2()).tl  # noqa: B018
