"""Untrained twins: what a net of the same shape knows before any training."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import torch

from mechnum.errors import MechnumError
from mechnum.inputs import seed_sequence
from mechnum.models.model import Model
from mechnum.models.wrap import wrap


def untrained(model: Model, seed: int = 0) -> Model:
    """A model of the same shape with initial weights, in the same precision and place.

    It has the same tokenizer, template and task. Torch's global generators are not touched.

    Raises:
        MechnumError: where the wrapped model is neither a TransformerLens-native net nor a
            transformers model, since how it was initialised is not known.
    """
    drawn = int(seed_sequence(seed).generate_state(1)[0])
    name = f"untrained {model.name}"
    wrapped: Any = model.wrapped
    source = getattr(wrapped, "original_model", wrapped)
    if model.spec.family == "native" and source is not wrapped:
        net = _native(wrapped.cfg, drawn, name, model)
    elif hasattr(source, "get_output_embeddings"):
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which would also seed the generators of the GPUs.
            torch.default_generator.manual_seed(drawn)
            net = type(source)(copy.deepcopy(source.config)).to(model.device, model.dtype).eval()
    else:
        raise MechnumError(
            f"how {model.name} was initialised is not known: make the untrained net yourself and "
            "give it as `untrained`"
        )
    return wrap(
        net,
        model.tokenizer,
        name,
        template=model.template,
        default_task=model.default_task,
    )


def _native(shape: Any, seed: int, name: str, like: Model) -> Any:
    from mechnum.models.native import NativeConfig, build_native, native_bridge

    config = NativeConfig(**{own.name: getattr(shape, own.name) for own in fields(NativeConfig)})
    net = build_native(config, seed).to(like.device, like.dtype)
    return native_bridge(net.eval(), config, name)
