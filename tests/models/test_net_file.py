"""Native nets from a `net.toml`: the layouts of the file are brought to TransformerLens' own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mechnum.errors import MechnumError
from mechnum.models.load import load
from mechnum.models.native import NativeConfig, build_native, native_tensors
from mechnum.models.net_file import load_net

pytestmark = pytest.mark.tl3
CONFIG = NativeConfig(
    n_layers=2,
    n_heads=2,
    d_model=8,
    d_head=3,
    d_mlp=12,
    n_ctx=4,
    d_vocab=7,
    d_vocab_out=6,
    normalization_type="LN",
)
NET = """
[net]
n_layers = 2
n_heads = 2
d_model = 8
d_head = 3
d_mlp = 12
n_ctx = 4
d_vocab = 7
d_vocab_out = 6
normalization_type = "LN"
"""
HEAD = 'weights = "model.safetensors"\n'
TOKENS = torch.tensor([[0, 1, 2, 3], [6, 5, 4, 3]])


def written(folder: Path, text: str, tensors: dict[str, torch.Tensor]) -> Path:
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    (folder / "net.toml").write_text(text)
    return folder / "net.toml"


@pytest.fixture
def net() -> torch.nn.Module:
    net = build_native(CONFIG, seed=3).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return net


def test_saved_and_read_is_the_same_net(net, tmp_path):
    path = written(tmp_path, HEAD + NET, native_tensors(net, CONFIG))
    model = load(path)
    with torch.no_grad():
        torch.testing.assert_close(model.decoder(TOKENS), net(TOKENS))
    assert model.tl.cfg.n_layers == 2
    assert model.default_task is None
    assert load(tmp_path).fingerprint == model.fingerprint


def test_other_layouts_and_names(net, tmp_path):
    tensors = native_tensors(net, CONFIG)
    tensors["embed.W_E"] = tensors["embed.W_E"].T
    tensors["head.weight"] = tensors.pop("unembed.W_U").T
    for layer in range(2):
        name = f"blocks.{layer}.attn."
        tensors[name + "W_Q"] = tensors[name + "W_Q"].transpose(1, 2)
        tensors[name + "W_O"] = tensors[name + "W_O"].flatten(0, 1).T
        tensors[f"blocks.{layer}.mask"] = torch.ones(4, 4)
    text = (
        HEAD
        + 'ignore = ["blocks.*.mask"]\n'
        + NET
        + """
[tensors]
"embed.W_E" = "d_model d_vocab"
"unembed.W_U" = { from = "head.weight", layout = "d_vocab_out d_model" }
"blocks.*.attn.W_Q" = "head d_head d_model"
"blocks.*.attn.W_O" = "d_model (head d_head)"

[task]
kind = "modular_addition"
p = 5
"""
    )
    path = written(tmp_path, text, tensors)
    model = load(path)
    with torch.no_grad():
        torch.testing.assert_close(model.decoder(TOKENS), net(TOKENS))
    assert model.default_task == "modular_addition:5"


def test_absent_biases_are_zero_and_absent_weights_refused(net, tmp_path):
    tensors = native_tensors(net, CONFIG)
    kept = {name: value for name, value in tensors.items() if ".attn.b_" not in name}
    loaded, _ = load_net(written(tmp_path, HEAD + NET, kept))
    assert not any(
        tensor.any() for name, tensor in loaded.state_dict().items() if ".attn.q.bias" in name
    )
    del kept["blocks.1.mlp.W_in"]
    with pytest.raises(MechnumError, match=r"tensor blocks\.1\.mlp\.W_in is missing"):
        load_net(written(tmp_path, HEAD + NET, kept))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + NET + "d_hidden = 3\n", "net.d_hidden"),
        (HEAD + NET.replace("n_layers = 2", ""), "n_layers"),
        (HEAD + NET.replace("n_heads = 2", 'n_heads = "two"'), "n_heads"),
        (HEAD + NET.replace("n_heads = 2", "n_heads = 0"), "n_heads"),
        (HEAD + NET + 'act_fn = "sine"\n', "act_fn"),
        ("color = 1\n" + HEAD + NET, "color"),
        ("[", "is not TOML"),
        ('weights = "other.safetensors"\n' + NET, "there is no weights file"),
        (HEAD + NET.replace("d_mlp = 12", "d_mlp = 13"), "does not fit"),
        (HEAD + NET + '[tensors]\n"embed.W_E" = "d_model d_head"\n', "is not laid out as"),
        (
            HEAD + NET + '[task]\nkind = "sorting"\np = 3\n',
            "task: .* .modular_addition., .process.",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused_in_one_line(net, tmp_path, text, message):
    path = written(tmp_path, text, native_tensors(net, CONFIG))
    with pytest.raises(MechnumError, match=message) as refused:
        load_net(path)
    assert "\n" not in str(refused.value)


def test_tensors_without_a_place_are_refused(net, tmp_path):
    tensors = {**native_tensors(net, CONFIG), "extra": torch.ones(1)}
    with pytest.raises(MechnumError, match="tensor extra has no place"):
        load_net(written(tmp_path, HEAD + NET, tensors))


def test_building_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    one, other = build_native(CONFIG, seed=1), build_native(CONFIG, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(one.state_dict()["head.weight"], other.state_dict()["head.weight"])
