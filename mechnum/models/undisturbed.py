"""Running somebody else's model without changing it, and without what they changed in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Dropout off, hook points silent and gradients off; afterwards everything is as before.

    Each submodule's own training flag is kept, since callers mix them. Hooks on TransformerLens'
    hook points are set aside, not removed: the decoder does what the weights say, and is compared
    with just that.
    """
    training = [(module, module.training) for module in model.modules()]
    hooks = [(module, module._forward_hooks) for module in hook_points(model)]
    try:
        for module, _ in training:
            module.training = False
        for module, _ in hooks:
            module._forward_hooks = OrderedDict()
        with torch.no_grad():
            yield
    finally:
        for module, mode in training:
            module.training = mode
        for module, own in hooks:
            module._forward_hooks = own


def hook_points(model: nn.Module) -> list[nn.Module]:
    """TransformerLens' hook points in `model`, found by name to leave the import to its users."""
    return [module for module in model.modules() if type(module).__name__ == "HookPoint"]


def n_user_hooks(model: nn.Module) -> int:
    """How many forward hooks sit on the model's hook points."""
    return sum(len(module._forward_hooks) for module in hook_points(model))
