"""An accelerator that computes other numbers than the CPU is refused at load.

There is none here: a decoder that says it is elsewhere, and one that computes wrongly, stand in.
"""

from __future__ import annotations

import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.device_check import check_device
from mechnum.models.verify import probe_tokens
from tests import fixtures


class Elsewhere(Decoder):
    """Says that it lies on another device, until tensors are made there."""

    @property
    def device(self):
        return _Other("cpu")


class _Other(str):
    type = "mps"


class SignTurned(Elsewhere):
    """The kind of fault that was reported: attention's write has the wrong sign."""

    def attn_out(self, layer, z):
        return -super().attn_out(layer, z)


def elsewhere(kind, architecture):
    decoder = mn.wrap(fixtures.ARCHITECTURES[architecture]()).decoder
    return kind(decoder.spec, decoder.weights, decoder.rotary), probe_tokens(decoder)


@pytest.fixture(autouse=True)
def _no_autocast_there(monkeypatch):
    monkeypatch.setattr("mechnum.models.device_check.exact", lambda device: torch.no_grad())


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_a_device_that_computes_the_same_passes(architecture):
    decoder, tokens = elsewhere(Elsewhere, architecture)
    check_device(decoder, tokens, 1e-6, "it")


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_a_device_that_turns_a_sign_is_refused(architecture):
    decoder, tokens = elsewhere(SignTurned, architecture)
    with pytest.raises(MechnumError, match=r"computes other numbers than the CPU .* use device="):
        check_device(decoder, tokens, 1e-3, "it")


def test_the_check_runs_when_a_model_is_wrapped(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "mechnum.models.verify.check_device", lambda *arguments: asked.append(arguments)
    )
    mn.wrap(fixtures.llama())
    ((decoder, _, tolerance, _),) = asked
    assert isinstance(decoder, Decoder)
    assert tolerance == 1e-3
