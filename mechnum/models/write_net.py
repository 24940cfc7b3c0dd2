"""Writing a native net as the folder that `net_file` reads."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mechnum.models.native import NativeConfig, native_tensors
from mechnum.models.net_file import NET_FILE

if TYPE_CHECKING:
    from torch import nn

WEIGHTS_FILE = "model.safetensors"


def save_net(net: nn.Module, config: NativeConfig, task: str, folder: Path) -> None:
    """Write `net.toml` and the weights in float32.

    Args:
        task: as `mechnum.tasks.parse` reads it, such as "modular_addition:113".
    """
    from safetensors.torch import save_file

    kind, _, p = task.partition(":")
    tables = {
        "net": {name: value for name, value in asdict(config).items() if value is not None},
        "task": {"kind": kind, "p": int(p)},
    }
    # Numbers and ASCII strings look the same in TOML and in JSON.
    lines = [f"weights = {json.dumps(WEIGHTS_FILE)}"]
    for table, entries in tables.items():
        lines += ["", f"[{table}]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in entries.items()]
    (folder / NET_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_file(native_tensors(net, config), folder / WEIGHTS_FILE)
