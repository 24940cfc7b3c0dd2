"""States of a corpus at its numbers, collected once and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float32, Int, Int64
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.probes.state_files import new_state_file, read_state_file
from mechnum.progress import track
from mechnum.tasks.contexts import ContextPrompts
from mechnum.tasks.prompts import as_bytes, fingerprint

_FORMAT = "mechnum states 1"
_COLUMNS = ("value", "template", "context", "text", "token", "position")


def collect_states(
    model: Model,
    prompts: Sequence[ContextPrompts],
    layers: Sequence[int] | None = None,
    file: str | Path | None = None,
    offset: int = 0,
) -> xr.Dataset:
    """The residual stream at every number of the texts.

    With a file, the states go there batch by batch and are read from it when they are used, so that
    memory holds one batch. A second call with the same model, texts and layers runs nothing.

    Args:
        layers: −1 is the embedding, l the state after layer l; all without it.
        file: a safetensors file, made where it is not there.
        offset: tokens from the number's place to where its state is taken; −1 is the token before,
            a control.

    Returns:
        `states` over (layer, row, dimension), float32, a row for each number in each text. Over
        row: `value`, `template`, `context` (its name), `text` (the text's place among all),
        `token` (the id of the number's token) and `position` (where the state is taken).

    Raises:
        MechnumError: no texts, layers that the model does not have or one of them twice, places
            outside of a text, and a file that holds other states, is damaged or cannot be written.
    """
    if not prompts:
        raise MechnumError("there are no texts to collect states of: give one or more")
    chosen = _layers(model, layers)
    columns, names = _index(prompts, offset)
    said = prompt_attributes(model, prompts)
    key = _key(model, prompts, names, chosen, offset)
    shape = (len(chosen), len(columns["value"]), model.spec.d_model)
    if file is None:
        states = np.empty(shape, dtype=np.float32)
        _collect(model, prompts, chosen, offset, states)
        return _dataset(states, columns, names, chosen, said, offset)
    path = Path(file)
    if not path.exists():
        kept = {"format": _FORMAT, "key": key, "contexts": json.dumps(names)}
        kept |= {"layers": json.dumps(chosen), "said": json.dumps(said)}
        with new_state_file(path, shape, columns, kept) as states:
            _collect(model, prompts, chosen, offset, states)
    states, columns, kept = read_state_file(path)
    if kept.get("format") != _FORMAT or kept.get("key") != key or states.shape != shape:
        raise MechnumError(
            f"{path} holds states of another model, other texts or other layers: give another "
            "file, or delete it to collect these"
        )
    return _dataset(states, columns, names, chosen, json.loads(kept["said"]), offset)


def _layers(model: Model, layers: Sequence[int] | None) -> list[int]:
    n_layers = model.spec.n_layers
    chosen = list(range(-1, n_layers)) if layers is None else [int(layer) for layer in layers]
    if not chosen or len(set(chosen)) < len(chosen):
        raise MechnumError(f"layers {tuple(chosen)}: give one or more, each once")
    if outside := [layer for layer in chosen if not -1 <= layer < n_layers]:
        raise MechnumError(
            f"{model.name} has no layer {outside[0]}: give −1, the embedding, to {n_layers - 1}"
        )
    return chosen


def _index(
    prompts: Sequence[ContextPrompts], offset: int
) -> tuple[dict[str, Int64[np.ndarray, " row"]], list[str]]:
    """What is known of each row, and the names of the contexts that it counts."""
    names = sorted({name for group in prompts for name in group.contexts})
    parts: dict[str, list[Tensor]] = {name: [] for name in _COLUMNS}
    for group in prompts:
        places = group.places + offset
        if bool((places < 0).any()) or int(places.max()) >= group.tokens.shape[1]:
            raise MechnumError(
                f"{offset} tokens from a number some texts have none: choose another offset, or "
                "texts with more around their numbers"
            )
        context = torch.tensor([names.index(name) for name in group.contexts])
        for name, column in zip(
            _COLUMNS,
            (
                group.values,
                _repeated(group.variables["template"], places),
                _repeated(context, places),
                _repeated(group.index, places),
                group.tokens.gather(1, group.places),
                places,
            ),
            strict=True,
        ):
            parts[name].append(column.flatten())
    return {name: torch.cat(column).numpy() for name, column in parts.items()}, names


def _repeated(column: Int[Tensor, " prompt"], places: Int[Tensor, "prompt value"]) -> Tensor:
    return column[:, None].expand_as(places)


def _collect(
    model: Model,
    prompts: Sequence[ContextPrompts],
    layers: list[int],
    offset: int,
    states: Float32[np.ndarray, "layer row d"],
) -> None:
    """Fill the states, a batch at a time."""
    n_layers = model.spec.n_layers
    for group, rows, at in track(list(_batches(model, prompts, offset)), "collecting states"):
        places = group.places[rows] + offset
        # Nothing behind the last number can change its state.
        start, end = int(places.min()), int(places.max()) + 1
        run = model.run(group.tokens[rows, :end], keep=("resid_pre",), start=start)
        row = torch.arange(len(places))[:, None]
        for index, layer in enumerate(layers):
            value = run.last if layer == n_layers - 1 else run["resid_pre", layer + 1]
            states[index, at] = value[row, places - start].flatten(0, 1).float().cpu().numpy()


def _batches(
    model: Model, prompts: Sequence[ContextPrompts], offset: int
) -> Iterator[tuple[ContextPrompts, slice, slice]]:
    """A group, its texts that are run at a time, and their rows among all."""
    before = 0
    for group in prompts:
        length, count = group.tokens.shape[1], group.places.shape[1]
        kept = 4 * (model.spec.n_layers + 1) * length * model.spec.d_model
        for rows in batches(len(group), kept + block_bytes(model.spec, length, length)):
            first, last = before + rows.start * count, before + rows.stop * count
            yield group, rows, slice(first, last)
        before += len(group) * count


def _key(
    model: Model,
    prompts: Sequence[ContextPrompts],
    names: list[str],
    layers: list[int],
    offset: int,
) -> str:
    """What states are of, hashed: weights, tokens, places, values and labels."""
    digest = hashlib.sha256(
        json.dumps(
            [model.fingerprint, str(model.dtype), fingerprint(prompts), names, layers, offset]
        ).encode()
    )
    for group in prompts:
        digest.update(as_bytes(group.values) + as_bytes(group.variables["template"]))
        digest.update(json.dumps(group.contexts).encode())
    return digest.hexdigest()


def _dataset(
    states: Float32[np.ndarray, "layer row d"],
    columns: dict[str, Int64[np.ndarray, " row"]],
    names: list[str],
    layers: list[int],
    said: dict[str, str | int | float],
    offset: int,
) -> xr.Dataset:
    labels: dict[str, object] = {
        name: ("row", column) for name, column in columns.items() if name != "context"
    }
    labels["context"] = ("row", np.array(names)[columns["context"]])
    return xr.Dataset(
        {"states": (("layer", "row", "dimension"), states)},
        coords={"layer": layers, **labels},
        attrs={**said, "offset": offset},
    )
