"""Which hook points do what they say? A large write to each, and a look at the logits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.decoder import Decoder
from mechnum.models.undisturbed import undisturbed
from mechnum.models.verify import probe_tokens
from mechnum.progress import track

# There are a thousand hook points in a model of thirty layers, so the prompt is short.
_TOKENS = 8
# What TransformerLens raises for hook points that the architecture or a flag rules out.
_REFUSALS = (RuntimeError, ValueError, NotImplementedError, KeyError, TypeError)


@dataclass(frozen=True)
class HookWrite:
    """What became of a large write to one hook point.

    Attributes:
        outcome: "discarded" writes leave the logits bit-same; hooks that "never fire" were
            registered and not called; "refused" ones raised.
        logit_change: largest change of a logit, NaN where nothing was written.
    """

    name: str
    outcome: Literal["moves the logits", "discarded", "never fires", "refused"]
    logit_change: float


class _SharedByPrompts(Exception):
    """The value has no entry for each prompt, so one forward cannot try several layers."""


def try_hooks(decoder: Decoder, tl: Any) -> list[HookWrite]:
    """Write to each hook point of `tl` and look whether the logits move.

    The writes go through the model's own hook points and are taken out again. One forward tries a
    hook point in all layers at once, each on a prompt of its own; what that cannot try is tried
    alone. A hook point with several names is tried once.
    """
    prompt = probe_tokens(decoder)[:1, :_TOKENS]
    names: dict[int, list[str]] = {}
    for name, point in tl.hook_dict.items():
        names.setdefault(id(point), []).append(name)
    kinds: dict[str, list[str]] = {}
    for first, *_ in names.values():
        kinds.setdefault(re.sub(r"^blocks\.\d+\.", "", first), []).append(first)
    tried: dict[str, HookWrite] = {}

    @cache
    def plain(rows: int) -> Tensor:
        return tl(prompt.expand(rows, -1)).float()

    with undisturbed(tl):
        for layers in track(list(kinds.values()), "writing to the hook points"):
            tried.update((write.name, write) for write in _try(tl, layers, prompt, plain))
    said = {name: replace(tried[same[0]], name=name) for same in names.values() for name in same}
    return [said[name] for name in tl.hook_dict]


def _try(
    tl: Any, names: list[str], prompt: Int[Tensor, "1 pos"], plain: Callable[[int], Tensor]
) -> list[HookWrite]:
    """Write to hook point i in row i of as many equal prompts, whose logits are `plain(rows)`."""
    fired: set[str] = set()

    def write(row: int) -> Any:
        def hook_function(value: Any, hook: Any) -> Any:
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            fired.add(names[row])
            if len(names) == 1:
                return _large(value)
            if value.shape[0] != len(names):
                raise _SharedByPrompts
            written = value.clone()
            written[row] = _large(value[row])
            return written

        return hook_function

    try:
        hooks = [(name, write(row)) for row, name in enumerate(names)]
        logits = tl.run_with_hooks(prompt.expand(len(names), -1), fwd_hooks=hooks).float()
    except (*_REFUSALS, _SharedByPrompts):
        if len(names) == 1:
            return [HookWrite(names[0], "refused", float("nan"))]
        return [alone for name in names for alone in _try(tl, [name], prompt, plain)]
    # A write that makes logits infinite or NaN has moved them.
    changes = (logits - plain(len(names))).abs().nan_to_num(float("inf")).amax(dim=(1, 2))
    return [
        _found(name, name in fired, float(change))
        for name, change in zip(names, changes, strict=True)
    ]


def _large(value: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    # Shuffled too: scaling and shifting alone would be undone by a norm.
    return 2 * value.roll(1, dims=-1) + 1


def _found(name: str, fired: bool, change: float) -> HookWrite:
    if not fired:
        return HookWrite(name, "never fires", float("nan"))
    return HookWrite(name, "moves the logits" if change > 0 else "discarded", change)
