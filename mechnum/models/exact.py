"""The arithmetic of measurements: gradients where asked for, and the model's own precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """Gradients and the caller's autocast are off within the block."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


@contextmanager
def differentiable(device: torch.device) -> Iterator[None]:
    """Gradients are on and the caller's autocast is off within the block, whatever was set."""
    with torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield
