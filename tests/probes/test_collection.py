"""States of a corpus: those of plain hooks, from the file the second time, whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors import safe_open

from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.probes import collect_around, collect_states
from mechnum.probes import collection as room

from .texts import reader, texts


def by_hooks(layers, offset=0):
    """[layer, row, d] from the outputs of the transformers model's blocks, text by text."""
    net = reader().wrapped
    hidden = {}
    hooks = [net.model.embed_tokens.register_forward_hook(lambda *io: hidden.update({-1: io[2]}))]
    for layer, block in enumerate(net.model.layers):

        def keep(_module, _inputs, output, layer=layer):
            hidden[layer] = output[0] if isinstance(output, tuple) else output

        hooks.append(block.register_forward_hook(keep))
    rows = []
    for group in texts():
        for tokens, places in zip(group.tokens, group.places + offset, strict=True):
            with torch.no_grad():
                net(tokens[None])
            rows.append(torch.stack([hidden[layer][0, places] for layer in layers]))
    for hook in hooks:
        hook.remove()
    return torch.cat(rows, dim=1).numpy()


@pytest.mark.parametrize("offset", [0, -1])
def test_states_are_those_of_plain_hooks_in_any_batches(tmp_path, offset):
    layers = [-1, 1, 2]
    with memory_budget(400_000):
        found = collect_states(reader(), texts(), layers, tmp_path / "s.safetensors", offset)
    np.testing.assert_allclose(found["states"].values, by_hooks(layers, offset), atol=2e-5)
    values = np.concatenate([group.values.flatten() for group in texts()])
    assert found["value"].values.tolist() == values.tolist()
    tokens = reader().tokenizer.batch_decode([[token] for token in found["token"].values])
    assert tokens == [str(value)[-1] for value in values]
    contexts = [
        name for group in texts() for name in group.contexts for _ in range(group.places.shape[1])
    ]
    assert found["context"].values.tolist() == contexts
    whole = collect_states(reader(), texts(), layers, offset=offset)
    np.testing.assert_allclose(whole["states"], found["states"], atol=2e-5)


def test_a_second_call_reads_the_file_and_runs_nothing(tmp_path, monkeypatch):
    path = tmp_path / "states.safetensors"
    first = collect_states(reader(), texts(), [0], path)
    monkeypatch.setattr(room, "_collect", None)
    again = collect_states(reader(), texts(), [0], path)
    assert first.identical(again)
    with safe_open(path, framework="np") as file:
        np.testing.assert_array_equal(file.get_tensor("states"), first["states"].values)
        np.testing.assert_array_equal(file.get_tensor("value"), first["value"].values)


def test_files_of_other_states_and_damaged_ones_are_refused(tmp_path):
    path = tmp_path / "states.safetensors"
    collect_states(reader(), texts(), [0], path)
    content = path.read_bytes()
    others = (
        lambda: collect_states(reader(), texts(), [1], path),
        lambda: collect_states(reader(), texts(), [0], path, offset=-1),
        lambda: collect_states(reader(), texts()[1:], [0], path),
        lambda: collect_states(reader(), texts(41), [0], path),
    )
    for call in others:
        with pytest.raises(MechnumError, match="holds states of another model"):
            call()
    assert path.read_bytes() == content
    for damaged in (b"", content[:4], content[:100], content[:-1], content + b"0", b"x" * 999):
        path.write_bytes(damaged)
        with pytest.raises(MechnumError, match="is not a whole file of states: delete it"):
            collect_states(reader(), texts(), [0], path)


def test_other_and_damaged_states_are_replaced_where_that_is_asked_for(tmp_path, monkeypatch):
    path, wanted = tmp_path / "states.safetensors", collect_states(reader(), texts(), [2])
    collect_states(reader(), texts(), [0], path)
    for before in (path.read_bytes(), b"", path.read_bytes()[:-1]):
        path.write_bytes(before)
        found = collect_states(reader(), texts(), [2], path, replace=True)
        xr.testing.assert_allclose(found, wanted)
    monkeypatch.setattr(type(reader()), "run", None)
    collect_states(reader(), texts(), [2], path, replace=True)


def test_an_edit_of_one_weight_makes_other_states(tmp_path):
    """A sample of the weights would not see it, and states from before the edit would be used."""
    model, path = reader(), tmp_path / "states.safetensors"
    collect_states(model, texts(), [0], path)
    weight = model.wrapped.model.layers[0].mlp.down_proj.weight
    before = weight[1, 1].item()
    try:
        with torch.no_grad():
            weight[1, 1] += 1
        with pytest.raises(MechnumError, match="other weights"):
            collect_states(model, texts(), [0], path)
    finally:
        with torch.no_grad():
            weight[1, 1] = before
    collect_states(model, texts(), [0], path)


def test_an_interrupted_collection_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "_collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect_states(reader(), texts(), [0], tmp_path / "states.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_impossible_collections_are_refused():
    for match, call in {
        "no texts": lambda: collect_states(reader(), ()),
        "no layer 3": lambda: collect_states(reader(), texts(), [3]),
        "each once": lambda: collect_states(reader(), texts(), [1, 1]),
        "some texts have none": lambda: collect_states(reader(), texts(), [1], offset=-60),
    }.items():
        with pytest.raises(MechnumError, match=match):
            call()


def test_several_offsets_come_from_one_run(tmp_path, monkeypatch):
    alone = {offset: collect_states(reader(), texts(), [0, 2], offset=offset) for offset in (0, -1)}
    runs = []
    plain = type(reader()).run
    monkeypatch.setattr(
        type(reader()), "run", lambda *given, **kept: runs.append(1) or plain(*given, **kept)
    )
    files = {0: tmp_path / "at.safetensors", -1: None}
    found = collect_around(reader(), texts(), files, [0, 2])
    count = len(runs)
    for offset, own in alone.items():
        np.testing.assert_allclose(found[offset]["states"], own["states"], atol=1e-6)
        assert found[offset].attrs["offset"] == offset
    collect_states(reader(), texts(), [0, 2])
    assert len(runs) == 2 * count
