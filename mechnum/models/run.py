"""A run: the states of one forward that were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder, KeysValues
from mechnum.models.exact import exact
from mechnum.models.spec import ModelSpec

StateName = Literal[
    "resid_pre",
    "resid_mid",
    "resid_post",
    "attn_out",
    "mlp_out",
    "q",
    "k",
    "v",
    "pattern",
    "z",
    "mlp_hidden",
]


@dataclass(frozen=True)
class Run:
    """States of prompts of equal length; the tensors share no storage with each other.

    Attributes:
        tokens: the prompts.
        start: first position of the kept states; `k`, `v` and `pattern` keep all keys.
        states: one tensor a layer for each name, first axis prompt.
            `resid_pre`, `resid_mid` (sequential blocks only), `resid_post`, `attn_out`, `mlp_out`:
            [prompt, pos, d_model]; `q`, `z`: [prompt, pos, head, d_head]; `k`, `v`:
            [prompt, pos, kv_head, d_head]; `pattern`: [prompt, head, pos, key]; `mlp_hidden`:
            [prompt, pos, d_mlp]. `q` and `k` are after rotation.
        last: the last residual, before the final norm, from `start` on.
    """

    tokens: Int[Tensor, "prompt pos"]
    start: int
    states: dict[StateName, list[Tensor]]
    last: Float[Tensor, "prompt kept d_model"]

    def __getitem__(self, key: tuple[StateName, int]) -> Tensor:
        """`run["z", 3]`: one state of one layer."""
        name, layer = key
        if name not in self.states:
            raise MechnumError(
                f"state {name!r} was not kept: "
                f"add it to `keep` (kept here: {', '.join(sorted(self.states)) or 'none'})"
            )
        return self.states[name][layer]

    def stacked(self, name: StateName) -> Float[Tensor, "layer prompt *state"]:
        """One state of all layers."""
        return torch.stack([self[name, layer] for layer in range(len(self.states[name]))])

    def past(self, layer: int) -> KeysValues | None:
        """Keys and values of `layer` before `start`; None where it is the first position."""
        if self.start == 0:
            return None
        return KeysValues(self["k", layer][:, : self.start], self["v", layer][:, : self.start])


def run(
    decoder: Decoder,
    tokens: Int[Tensor, "prompt pos"],
    keep: Iterable[StateName] = (),
    start: int = 0,
) -> Run:
    """Run prompts of equal length and keep the named states of every layer from `start` on.

    Raises:
        MechnumError: on an unknown state, on `resid_mid` of a parallel block (it does not exist
            there), on tokens outside the vocabulary and on prompts longer than the context.
    """
    wanted = set(keep)
    _check(decoder, tokens, wanted)
    with exact(decoder.device):
        return _run(decoder, tokens.to(decoder.device), wanted, start)


def _run(
    decoder: Decoder, tokens: Int[Tensor, "prompt pos"], wanted: set[StateName], start: int
) -> Run:
    resid = decoder.embed(tokens)
    kept: dict[StateName, list[Tensor]] = {name: [] for name in wanted}
    for layer in range(decoder.spec.n_layers):
        attn = decoder.attention(layer, resid)
        mid = resid + attn.out
        mlp = decoder.mlp(layer, resid if decoder.spec.parallel else mid)
        post = mid if mlp is None else mid + mlp.out
        computed = {
            "resid_pre": resid,
            "resid_mid": mid,
            "resid_post": post,
            "attn_out": attn.out,
            "mlp_out": torch.zeros_like(post) if mlp is None else mlp.out,
            "q": attn.q,
            "k": attn.k,
            "v": attn.v,
            "pattern": attn.pattern,
            "z": attn.z,
            "mlp_hidden": post.new_zeros(*post.shape[:-1], 0) if mlp is None else mlp.hidden,
        }
        for name in wanted:
            # The next layer's input is this layer's output: only a copy keeps them apart.
            kept[name].append(_from(start, name, computed[name].squeeze(0)).clone())
        resid = post
    return Run(tokens, start, kept, resid[0, :, start:].clone())


def _from(start: int, name: StateName, state: Tensor) -> Tensor:
    if name in ("k", "v"):
        return state
    return state[:, :, start:] if name == "pattern" else state[:, start:]


def _check(decoder: Decoder, tokens: Tensor, wanted: set[StateName]) -> None:
    unknown = wanted - set(get_args(StateName))
    if unknown:
        raise MechnumError(
            f"unknown state {sorted(unknown)[0]!r}: use one of {', '.join(get_args(StateName))}"
        )
    if "resid_mid" in wanted and decoder.spec.parallel:
        raise MechnumError(
            "resid_mid does not exist in a parallel block: use resid_pre or resid_post"
        )
    check_tokens(decoder, tokens)


def check_tokens(decoder: Decoder, tokens: Int[Tensor, "prompt pos"]) -> None:
    """Refuse tokens that the model cannot read.

    Raises:
        MechnumError: on tokens outside the vocabulary, on prompts longer than the context, and on
            padded prompts, since the decoder has no mask.
    """
    spec = decoder.spec
    if tokens.numel() == 0:
        raise MechnumError("there are no tokens to run: give at least one prompt of one token")
    if tokens.min() < 0 or tokens.max() >= spec.d_vocab:
        raise MechnumError(
            f"token {int(tokens.max() if tokens.max() >= spec.d_vocab else tokens.min())} is not "
            f"in the vocabulary of {spec.d_vocab}: use the model's own tokenizer"
        )
    if tokens.shape[1] > spec.n_ctx:
        raise MechnumError(
            f"a prompt of {tokens.shape[1]} tokens does not fit the context of {spec.n_ctx}: "
            "use shorter prompts"
        )
    if spec.pad_token_id is not None and bool(_padded(tokens, spec).any()):
        raise MechnumError(
            f"a prompt is padded with token {spec.pad_token_id}: give prompts without padding, "
            "those of equal length together"
        )


def _padded(tokens: Int[Tensor, "prompt pos"], spec: ModelSpec) -> Bool[Tensor, " prompt"]:
    """Which prompts begin or end with the pad token; one may lead where it is the BOS token."""
    pad = tokens == spec.pad_token_id
    if spec.pad_token_id == spec.bos_token_id:
        pad = pad[:, 1:] if tokens.shape[1] > 1 else pad[:, :0]
    return pad[:, :1].any(1) | pad[:, -1:].any(1)
