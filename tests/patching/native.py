"""Nets whose weights are written down, as models that mechnum wraps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

import mechnum as mn
from mechnum.models.native import NativeConfig, bridge_config, build_native, load_native_tensors


def wrapped(
    config: NativeConfig,
    tensors: Mapping[str, Tensor],
    name: str,
    dtype: torch.dtype = torch.float64,
) -> Any:
    """A TransformerLens-native net with these tensors, wrapped; absent biases are 0."""
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    # In its precision first, so that loading does not round ln 2 or 1/3 to float32.
    net = build_native(config, seed=0).to(dtype)
    load_native_tensors(net, config, tensors)
    bridge = build_bridge_from_module(
        net.eval(),
        "TransformerLensNative",
        tl_config=bridge_config(config),
        model_name=name,
    )
    return mn.wrap(bridge, name=name)
