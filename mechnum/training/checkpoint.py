"""Saved states of a run, from which it goes on as if it had not been stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from mechnum.errors import MechnumError

STATE_FILE = "state.safetensors"


@dataclass(frozen=True)
class State:
    """A run after `step` optimiser steps.

    Attributes:
        weights: the net's tensors by name.
        optimizer: the optimiser's tensors, by the parameter's place among the trained ones.
    """

    step: int
    weights: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]

    def restore(self, net: nn.Module, optimizer: Optimizer) -> None:
        """Put this state into `net` and `optimizer`.

        Raises:
            MechnumError: where it belongs to a net with other tensors.
        """
        groups = optimizer.state_dict()["param_groups"]
        try:
            net.load_state_dict(self.weights)
            optimizer.load_state_dict({"state": self.optimizer, "param_groups": groups})
        except (RuntimeError, ValueError):
            raise MechnumError(
                "the saved state has other tensors than this recipe's net: start again in another "
                "folder"
            ) from None


def save_state(folder: Path, net: nn.Module, optimizer: Optimizer, step: int) -> None:
    """Write weights and optimiser state under a temporary name, then rename.

    A kill at any moment leaves either the last state or this one, never half of one.
    """
    tensors = {f"net/{name}": tensor.contiguous() for name, tensor in net.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{key}": torch.as_tensor(v) for key, v in state.items()}
    unfinished = folder / (STATE_FILE + ".tmp")
    save_file(tensors, unfinished, metadata={"step": json.dumps(step)})
    os.replace(unfinished, folder / STATE_FILE)


def load_state(folder: Path) -> State | None:
    """The last saved state, or None where none was saved yet.

    Raises:
        MechnumError: where the file is damaged.
    """
    path = folder / STATE_FILE
    if not path.exists():
        return None
    weights: dict[str, Tensor] = {}
    optimizer: dict[int, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as stored:
            step = int(json.loads(stored.metadata()["step"]))
            for name in stored.keys():  # noqa: SIM118 - not a dict
                kind, _, rest = name.partition("/")
                if kind == "net":
                    weights[rest] = stored.get_tensor(name)
                else:
                    index, _, key = rest.partition("/")
                    optimizer.setdefault(int(index), {})[key] = stored.get_tensor(name)
    except (SafetensorError, KeyError, TypeError, ValueError):
        raise MechnumError(
            f"{path} is not a state of a training run: delete {folder} to start again"
        ) from None
    return State(step, weights, optimizer)
