"""What a write to each hook point does, and that trying leaves the model as it was."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from mechnum.models import hook_writes
from mechnum.models.hook_writes import try_hooks
from mechnum.models.verify import probe_tokens
from mechnum.models.wrap import wrap
from tests import fixtures
from tests.models.unchanged import unchanged

pytestmark = pytest.mark.tl3

TOKENS = fixtures.random_tokens(2, 5)


@pytest.mark.parametrize("architecture", ["gptj", "gpt_neox parallel", "llama grouped"])
def test_writes_to_the_pattern_move_the_logits_or_are_reported(architecture):
    """GPT-J's attention goes on with the pattern that it had, whatever a hook writes."""
    wrapped = wrap(fixtures.ARCHITECTURES[architecture]())
    outcomes = {write.name: write for write in try_hooks(wrapped.decoder, wrapped.tl)}
    pattern = outcomes["blocks.1.attn.hook_pattern"]
    if architecture == "gptj":
        assert pattern.outcome == "discarded"
        assert pattern.logit_change == 0
    else:
        assert pattern.outcome == "moves the logits"
        assert pattern.logit_change > 1e-3
    assert outcomes["blocks.1.hook_resid_pre"].outcome == "moves the logits"
    assert outcomes["blocks.1.attn.hook_rot_q"].outcome in ("never fires", "moves the logits")


@pytest.mark.parametrize(
    "architecture", fixtures.rest_slow(["gptj", "gpt_neox sequential", "llama grouped"], "gptj")
)
def test_all_layers_at_once_find_what_each_write_alone_finds(architecture):
    """Every name in turn, aliases too, with a forward of its own."""
    wrapped = wrap(fixtures.ARCHITECTURES[architecture]())
    tl = wrapped.tl
    found = try_hooks(wrapped.decoder, tl)
    assert [write.name for write in found] == list(tl.hook_dict)
    tokens = probe_tokens(wrapped.decoder)[:1, :8]
    for write in found:
        if write.outcome not in ("moves the logits", "discarded"):
            assert math.isnan(write.logit_change)
            continue
        with torch.no_grad():
            written = tl.run_with_hooks(tokens, fwd_hooks=[(write.name, overwrite)])
            change = float((written - tl(tokens)).abs().nan_to_num(math.inf).max())
        assert write.logit_change == pytest.approx(change, rel=1e-4, abs=1e-6), write.name


def overwrite(value: torch.Tensor, hook: Any) -> torch.Tensor:
    return 2 * value.roll(1, dims=-1) + 1


def test_trying_hooks_leaves_the_model_and_the_users_hooks_alone():
    bridged = fixtures.bridge(fixtures.llama())
    bridged.blocks[1].hook_resid_post.add_hook(lambda value, hook: value * 0.5)
    with torch.no_grad(), unchanged(bridged, lambda: bridged(TOKENS).clone()):
        wrapped = wrap(bridged)
        try_hooks(wrapped.decoder, bridged)


def test_an_interrupt_in_the_middle_leaves_the_model_as_it_was(monkeypatch):
    bridged = fixtures.bridge(fixtures.llama())
    bridged.blocks[0].hook_resid_post.add_hook(lambda value, hook: value * 0.5)
    bridged.train()
    wrapped = wrap(bridged)
    tried: list[str] = []

    def interrupted(tl: Any, names: list[str], *rest: Any) -> Any:
        tried.extend(names)
        if len(tried) > 3:
            raise KeyboardInterrupt
        return [hook_writes.HookWrite(name, "never fires", float("nan")) for name in names]

    monkeypatch.setattr(hook_writes, "_try", interrupted)
    bridged.eval()
    with torch.no_grad(), unchanged(bridged, lambda: bridged(TOKENS).clone()):
        bridged.train()
        with pytest.raises(KeyboardInterrupt):
            try_hooks(wrapped.decoder, bridged)
        bridged.eval()
