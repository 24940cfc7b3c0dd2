"""Where tensors are computed."""

from __future__ import annotations

import torch

from mechnum.errors import MechnumError


def device_of(name: str | None) -> torch.device:
    """The device of this name, as torch names it; None is the CPU.

    Raises:
        MechnumError: where it is not there.
    """
    try:
        device = torch.device(name or "cpu")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise MechnumError(
            f"device {name!r} is not there: use 'cpu', or install a torch build that reaches it"
        ) from None
    return device
