"""Running somebody else's model without changing it, and without what they changed in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Dropout off, the user's hooks silent, gradients off; afterwards everything is as before.

    Each submodule's own training flag is kept, since callers mix them. Hooks are set aside, not
    removed: the decoder does what the weights say, and is compared with just that.
    """
    training = [(module, module.training) for module in model.modules()]
    hooks = [(module, name, getattr(module, name)) for module in hooked(model) for name in _HOOKS]
    try:
        for module, _ in training:
            module.training = False
        for module, name, _ in hooks:
            setattr(module, name, OrderedDict())
        with torch.no_grad():
            yield
    finally:
        for module, mode in training:
            module.training = mode
        for module, name, own in hooks:
            setattr(module, name, own)


def hooked(model: nn.Module) -> list[nn.Module]:
    """Where a user's hooks are: on TransformerLens' hook points, or on any module where there are
    none. Hook points are found by name, which leaves the import to its users."""
    points = [module for module in model.modules() if type(module).__name__ == "HookPoint"]
    return points or list(model.modules())


def n_user_hooks(model: nn.Module) -> int:
    """How many forward hooks a user has put on the model."""
    return sum(len(getattr(module, name)) for module in hooked(model) for name in _HOOKS)
