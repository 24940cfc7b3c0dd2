"""Writing a native net as the folder that `net_file` reads."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mechnum.models.native import NativeConfig, native_tensors
from mechnum.models.net_file import NET_FILE, task_entry

if TYPE_CHECKING:
    from torch import nn

WEIGHTS_FILE = "model.safetensors"


def save_net(net: nn.Module, config: NativeConfig, task: str, folder: Path) -> None:
    """Write `net.toml` and the weights in float32.

    Args:
        task: such as "modular_addition:113", or the name of a process.
    """
    from safetensors.torch import save_file

    tables = {
        "net": {name: value for name, value in asdict(config).items() if value is not None},
        "task": task_entry(task).model_dump(),
    }
    # Numbers and ASCII strings look the same in TOML and in JSON.
    lines = [f"weights = {json.dumps(WEIGHTS_FILE)}"]
    for table, entries in tables.items():
        lines += ["", f"[{table}]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in entries.items()]
    (folder / NET_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_file(native_tensors(net, config), folder / WEIGHTS_FILE)
