from __future__ import annotations

import pytest
import torch

from mechnum.models.native import NativeConfig, build_native
from mechnum.models.net_file import NET_FILE, load_net, read_net_file
from mechnum.models.write_net import save_net

SIZES = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_head": 4, "d_mlp": 16}
PLAIN = NativeConfig(**SIZES, n_ctx=3, d_vocab=6, d_vocab_out=5)
NORMED = NativeConfig(
    **SIZES, n_ctx=4, d_vocab=9, d_vocab_out=9, act_fn="gelu", normalization_type="LN"
)


@pytest.mark.parametrize("config", [PLAIN, NORMED], ids=["plain", "normed"])
def test_written_net_comes_back(config, tmp_path):
    net = build_native(config, seed=3)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 0.1
    save_net(net, config, "modular_addition:5", tmp_path)
    loaded, _ = load_net(tmp_path / NET_FILE)
    file = read_net_file(tmp_path / NET_FILE)
    assert file.net == config
    assert file.task is not None
    assert file.task.text == "modular_addition:5"
    for name, tensor in net.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    tokens = torch.tensor([[1, 2, 5], [4, 4, 5]])
    assert torch.equal(loaded(tokens), net.eval()(tokens))
