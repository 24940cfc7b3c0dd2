"""States of a corpus at its numbers, collected once and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float32, Int, Int64
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.digest import weights_digest
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
    replace: bool = False,
) -> xr.Dataset:
    """The residual stream at every number of the texts.

    With a file, the states go there batch by batch and are read from it when they are used, so that
    memory holds one batch. A second call with the same model, texts and layers runs nothing.

    Args:
        layers: −1 is the embedding, l the state after layer l; all without it.
        file: a safetensors file, made where it is not there.
        offset: tokens from the number's place to where its state is taken; −1 is the token before,
            a control.
        replace: what the file holds, where these are other states or it is damaged.

    Returns:
        `states` over (layer, row, dimension), float32, a row for each number in each text. Over
        row: `value`, `template`, `context` (its name), `text` (the text's place among all),
        `token` (the id of the number's token) and `position` (where the state is taken).

    Raises:
        MechnumError: no texts, layers that the model does not have or one of them twice, places
            outside of a text, a file that cannot be written, and without `replace` one that holds
            other states or is damaged.
    """
    return collect_around(model, prompts, {offset: file}, layers, replace)[offset]


def collect_around(
    model: Model,
    prompts: Sequence[ContextPrompts],
    files: Mapping[int, str | Path | None],
    layers: Sequence[int] | None = None,
    replace: bool = False,
) -> dict[int, xr.Dataset]:
    """`collect_states` at several offsets from the numbers, in one run of the texts.

    Args:
        files: offset → a file for its states, or None.

    Raises:
        MechnumError: as `collect_states`.
    """
    if not prompts:
        raise MechnumError("there are no texts to collect states of: give one or more")
    chosen = checked_layers(model, layers)
    said = prompt_attributes(model, prompts)
    kept = {offset: Path(file) for offset, file in files.items() if file is not None}
    # All of the weights are read for it, so that an edit of one makes other states.
    digest = f"{weights_digest(model)} {model.dtype}" if kept else ""
    plans = {
        offset: _Plan.of(model, digest, prompts, chosen, offset, kept.get(offset))
        for offset in files
    }
    found: dict[int, xr.Dataset] = {}
    with ExitStack() as writing:
        fresh: dict[int, Float32[np.ndarray, "layer row d"]] = {}
        for offset, plan in plans.items():
            if plan.file is None:
                fresh[offset] = np.empty(plan.shape, dtype=np.float32)
                found[offset] = plan.dataset(fresh[offset], plan.columns, said)
            elif not plan.file.exists() or (replace and not plan.is_kept()):
                fresh[offset] = writing.enter_context(plan.new_file(said))
        if fresh:
            _collect(model, prompts, chosen, fresh)
    return {
        offset: found[offset] if offset in found else plan.read() for offset, plan in plans.items()
    }


@dataclass(frozen=True)
class _Plan:
    """What is collected at one offset, and where it is kept."""

    file: Path | None
    key: str
    shape: tuple[int, int, int]
    columns: dict[str, Int64[np.ndarray, " row"]]
    contexts: list[str]
    layers: list[int]
    offset: int

    @classmethod
    def of(
        cls,
        model: Model,
        digest: str,
        prompts: Sequence[ContextPrompts],
        layers: list[int],
        offset: int,
        file: Path | None,
    ) -> _Plan:
        columns, names = _index(prompts, offset)
        key = _key(digest, prompts, names, layers, offset)
        shape = (len(layers), len(columns["value"]), model.spec.d_model)
        return cls(file, key, shape, columns, names, layers, offset)

    def new_file(
        self, said: dict[str, str | int | float]
    ) -> AbstractContextManager[Float32[np.ndarray, "layer row d"]]:
        assert self.file is not None
        kept = {"format": _FORMAT, "key": self.key, "contexts": json.dumps(self.contexts)}
        kept |= {"layers": json.dumps(self.layers), "said": json.dumps(said)}
        return new_state_file(self.file, self.shape, self.columns, kept)

    def is_kept(self) -> bool:
        """Whether the file holds these states, whole."""
        try:
            self.read()
        except MechnumError:
            return False
        return True

    def read(self) -> xr.Dataset:
        assert self.file is not None
        states, columns, kept = read_state_file(self.file)
        same = kept.get("format") == _FORMAT and kept.get("key") == self.key
        if not same or states.shape != self.shape:
            raise MechnumError(
                f"{self.file} holds states of another model, other weights, texts or layers: give "
                "another folder, or delete it to collect these"
            )
        return self.dataset(states, columns, json.loads(kept["said"]))

    def dataset(
        self,
        states: Float32[np.ndarray, "layer row d"],
        columns: dict[str, Int64[np.ndarray, " row"]],
        said: dict[str, str | int | float],
    ) -> xr.Dataset:
        labels: dict[str, object] = {
            name: ("row", column) for name, column in columns.items() if name != "context"
        }
        labels["context"] = ("row", np.array(self.contexts)[columns["context"]])
        return xr.Dataset(
            {"states": (("layer", "row", "dimension"), states)},
            coords={"layer": self.layers, **labels},
            attrs={**said, "offset": self.offset},
        )


def checked_layers(model: Model, layers: Sequence[int] | None) -> list[int]:
    """Layers from −1, the embedding, on; all without any.

    Raises:
        MechnumError: no layers, one that the model does not have, or one of them twice.
    """
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
    states: Mapping[int, Float32[np.ndarray, "layer row d"]],
) -> None:
    """Fill the states of each offset, a batch at a time."""
    n_layers = model.spec.n_layers
    for group, rows, at in track(list(_batches(model, prompts)), "collecting states"):
        places = group.places[rows]
        # Nothing behind the last number can change its state.
        start, end = int(places.min()) + min(states), int(places.max()) + max(states) + 1
        run = model.run(group.tokens[rows, :end], keep=("resid_pre",), start=start)
        row = torch.arange(len(places))[:, None]
        for index, layer in enumerate(layers):
            value = run.last if layer == n_layers - 1 else run["resid_pre", layer + 1]
            for offset, own in states.items():
                there = value[row, places + offset - start]
                own[index, at] = there.flatten(0, 1).float().cpu().numpy()


def _batches(
    model: Model, prompts: Sequence[ContextPrompts]
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
    weights: str,
    prompts: Sequence[ContextPrompts],
    names: list[str],
    layers: list[int],
    offset: int,
) -> str:
    """What states are of, hashed: weights, precision, tokens, places, values and labels."""
    digest = hashlib.sha256(
        json.dumps([weights, fingerprint(prompts), names, layers, offset]).encode()
    )
    for group in prompts:
        digest.update(as_bytes(group.values) + as_bytes(group.variables["template"]))
        digest.update(json.dumps(group.contexts).encode())
    return digest.hexdigest()
