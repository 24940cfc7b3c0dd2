"""Wraps models that are in memory already."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.model import Model, sharing_copy
from mechnum.models.quiet import quiet_transformers
from mechnum.models.read_hf import rotary_from_hf, weights_from_hf
from mechnum.models.read_tl import rotary_from_tl, weights_from_tl
from mechnum.models.spec import spec_from_hf, spec_from_tl
from mechnum.models.tl_version import require_transformer_lens
from mechnum.models.verify import verify


def wrap(
    obj: Any,
    tokenizer: Any = None,
    name: str | None = None,
    *,
    template: str | None = None,
    default_task: str | None = None,
) -> Model:
    """Wrap a HookedTransformer, a TransformerBridge or a transformers causal language model.

    The object is neither changed nor copied. Its weights are read as they stand, folded and centred
    ones included.

    Args:
        tokenizer: taken from the object where it has one.
        name: stands in reports; the object's own name by default.
        template: prompt with `{a}` and `{b}` that the model was trained on.
        default_task: what the model was trained on, as `mechnum.tasks.parse` reads it.

    Raises:
        MechnumError: on other objects, on unsupported architectures, and where the decoder does
            not give the object's logits.
    """
    classes = {cls.__name__ for cls in type(obj).__mro__}
    if {"HookedTransformer", "TransformerBridge"} & classes:
        decoder, make_tl = _tl_decoder(obj), lambda: obj
        forward = obj
        tokenizer = tokenizer or obj.tokenizer
        own_name = obj.cfg.model_name
    elif "PreTrainedModel" in classes and hasattr(obj, "get_output_embeddings"):
        decoder = _hf_decoder(obj)
        make_tl = partial(bridge_around, obj, tokenizer)
        forward = partial(_hf_logits, obj)
        own_name = obj.config.name_or_path
    else:
        raise MechnumError(
            f"cannot wrap a {type(obj).__name__}: give a HookedTransformer, a TransformerBridge "
            "or a transformers causal language model"
        )
    said: str = name or own_name or type(obj).__name__
    verification = verify(decoder, obj, forward, said)
    return Model(
        said, decoder.spec, decoder, tokenizer, verification, obj, make_tl, template, default_task
    )


def bridge_around(model: nn.Module, tokenizer: Any) -> Any:
    """A TransformerBridge on the weights of a transformers model, whose own tree stays as it is."""
    require_transformer_lens()
    config: Any = model.config
    twin: Any = sharing_copy(model)
    # Fused attention computes no pattern, so that its hooks would never fire.
    twin.set_attn_implementation("eager")
    with quiet_transformers(), _on_disk(tokenizer) as readable:
        from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

        return build_bridge_from_module(
            twin, type(model).__name__, hf_config=config, tokenizer=readable
        )


@contextmanager
def _on_disk(tokenizer: Any) -> Iterator[Any]:
    """TransformerLens reads a tokenizer again from where it came: give one in memory a folder."""
    if tokenizer is None or "name_or_path" in tokenizer.init_kwargs:
        yield tokenizer
        return
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        yield type(tokenizer).from_pretrained(folder)


def _hf_decoder(model: Any) -> Decoder:
    spec = spec_from_hf(model.config)
    weights = weights_from_hf(model, spec)
    return Decoder(spec, weights, rotary_from_hf(model.config, spec, weights.W_E.device))


def _tl_decoder(model: Any) -> Decoder:
    """Bridges around transformers models keep its configuration, other nets TransformerLens'."""
    hf_config = getattr(getattr(model, "original_model", None), "config", None)
    if hf_config is None:
        spec = spec_from_tl(model.cfg)
        return Decoder(spec, weights_from_tl(model, spec), rotary_from_tl(model, spec))
    spec = spec_from_hf(hf_config)
    weights = weights_from_tl(model, spec)
    return Decoder(spec, weights, rotary_from_hf(hf_config, spec, weights.W_E.device))


def _hf_logits(model: Any, tokens: Any) -> Any:
    return model(tokens, use_cache=False).logits
