"""The arithmetic of measurements: no gradients, and no precision but the model's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """Gradients and the caller's autocast are off within the block."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield
