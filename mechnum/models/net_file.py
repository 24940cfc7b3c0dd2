"""A native net on disk: `net.toml` beside its safetensors file.

```toml
weights = "grokking_mod113_wd1.safetensors"   # relative to this file
ignore = ["blocks.*.attn.mask"]               # tensors of the file that are not weights

[net]                                         # fields of NativeConfig
n_layers = 1
# ...

[tensors]                                     # only where the file differs from TransformerLens
"embed.W_E" = "d_model d_vocab"               # layout in the file
"unembed.W_U" = { from = "head.weight", layout = "d_vocab_out d_model" }

[task]                                        # what the net was trained on
kind = "modular_addition"                     # or kind = "process", name = "mess3:0.05,0.85"
p = 113
```
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mechnum.errors import MechnumError
from mechnum.models.native import NativeConfig, build_native, load_native_tensors, slots
from mechnum.toml_files import read_toml

if TYPE_CHECKING:
    from torch import Tensor, nn

NET_FILE = "net.toml"


class Source(BaseModel):
    """Where a tensor stands in the weights file: its name there, and its einops layout."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_: str | None = Field(default=None, alias="from")
    layout: str | None = None


class ModularEntry(BaseModel):
    """A net that was trained on addition modulo p."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["modular_addition"]
    p: int = Field(gt=1)

    @property
    def text(self) -> str:
        """The task as `mechnum.tasks.parse` reads it."""
        return f"{self.kind}:{self.p}"


class ProcessEntry(BaseModel):
    """A net that was trained to predict a hidden Markov process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["process"]
    name: str = Field(min_length=1)

    @property
    def text(self) -> str:
        """The process as `mechnum.tasks.processes.find_process` reads it."""
        return self.name


TaskEntry = Annotated[ModularEntry | ProcessEntry, Field(discriminator="kind")]


def task_entry(text: str) -> ModularEntry | ProcessEntry:
    """The entry of a task or process, from what its `text` is."""
    kind, _, p = text.partition(":")
    if kind == "modular_addition":
        return ModularEntry(kind=kind, p=int(p))
    return ProcessEntry(kind="process", name=text)


class NetFile(BaseModel):
    """The contents of a `net.toml`; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: str
    net: NativeConfig
    ignore: tuple[str, ...] = ()
    tensors: dict[str, str | Source] = Field(default_factory=dict)
    task: TaskEntry | None = None


def read_net_file(path: Path) -> NetFile:
    """Parse and check a `net.toml`.

    Raises:
        MechnumError: on TOML that does not parse, on unknown or missing keys, on wrong types.
    """
    content = read_toml(path)
    try:
        return NetFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MechnumError(f"{path}: {where}: {first['msg']}: correct the file") from None


def load_net(path: Path) -> tuple[nn.Module, NetFile]:
    """The net that a `net.toml` describes, with its weights.

    Raises:
        MechnumError: where the file, the weights or their shapes do not fit together.
    """
    file = read_net_file(path)
    try:
        net = build_native(file.net, seed=0)
    except (ValueError, NotImplementedError) as error:
        raise MechnumError(f"{path}: [net]: {str(error).splitlines()[0]}: correct it") from None
    stored = read_safetensors(path.parent / file.weights)
    kept = {
        name: tensor
        for name, tensor in stored.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in file.ignore)
    }
    load_native_tensors(net, file.net, _canonical(kept, file, net))
    return net.eval(), file


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, in float32.

    Raises:
        MechnumError: where the file is missing, damaged or of another format.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise MechnumError(f"there is no weights file {path}: correct `weights`")
    try:
        return {name: tensor.float() for name, tensor in load_file(path).items()}
    except SafetensorError as error:
        raise MechnumError(
            f"{path} is not a whole safetensors file ({error}): get it again"
        ) from None


def _canonical(stored: dict[str, Tensor], file: NetFile, net: nn.Module) -> dict[str, Tensor]:
    """The tensors renamed and laid out as TransformerLens has them."""
    tensors = dict(stored)
    for name, slot in slots(net, file.net).items():
        source = _source(name, file)
        in_file = source.from_ or name
        if in_file not in tensors:
            continue
        tensor = tensors.pop(in_file)
        if source.layout is not None:
            tensor = _lay_out(tensor, source.layout, slot.layout, name, file)
        tensors[name] = tensor
    return tensors


def _source(name: str, file: NetFile) -> Source:
    """The entry of [tensors] for `name`; `*` in a key stands for every layer."""
    for pattern, entry in file.tensors.items():
        if not fnmatch.fnmatchcase(name, pattern):
            continue
        source = Source(layout=entry) if isinstance(entry, str) else entry
        if source.from_ and "*" in source.from_:
            layer = name.split(".")[1]
            source = source.model_copy(update={"from_": source.from_.replace("*", layer)})
        return source
    return Source()


def _lay_out(tensor: Tensor, layout: str, wanted: str, name: str, file: NetFile) -> Any:
    from einops import EinopsError, rearrange

    sizes = {"head": file.net.n_heads} if "(" in layout else {}
    try:
        return rearrange(tensor, f"{layout} -> {wanted}", **sizes)
    except EinopsError:
        raise MechnumError(
            f"tensor {name} of shape {tuple(tensor.shape)} is not laid out as {layout!r}: "
            f"write its axes in the file's order, from the names {wanted!r}"
        ) from None
