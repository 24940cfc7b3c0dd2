"""A run: the states of one forward that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import get_args

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import NEURON_STATES, Decoder, KeysValues, StateName
from mechnum.models.exact import exact
from mechnum.models.spec import ModelSpec

# What a state becomes, from its name, its layer, its value [stack, prompt, pos, ...] and the
# position of the value's first entry.
Edit = Callable[[StateName, int, Tensor, int], Tensor]


@dataclass(frozen=True)
class Run:
    """States of prompts of equal length; the tensors share no storage with each other.

    Attributes:
        tokens: the prompts.
        start: first position of the kept states; `k`, `v` and `pattern` keep all keys.
        states: one tensor a layer for each name, first axis prompt.
            `resid_pre`, `resid_mid` (sequential blocks only), `resid_post`, `attn_out`, `mlp_out`:
            [prompt, pos, d_model]; `q`, `z`: [prompt, pos, head, d_head]; `k`, `v`:
            [prompt, pos, kv_head, d_head]; `pattern`: [prompt, head, pos, key]; `mlp_pre`
            (what the activation function reads; in gated MLPs the gate) and `mlp_hidden`
            (activations, after any gate): [prompt, pos, d_mlp]. `q` and `k` are after rotation.
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

    def from_position(self, start: int) -> Run:
        """The same run with its states cut to the positions from `start` on, without copies.

        Raises:
            MechnumError: on a position before those that were kept.
        """
        if start < self.start:
            raise MechnumError(f"states before position {self.start} were not kept: run it again")
        cut = start - self.start
        states: dict[StateName, list[Tensor]] = {
            name: [_cut(name, state, cut) for state in layers]
            for name, layers in self.states.items()
        }
        return Run(self.tokens, start, states, self.last[:, cut:])

    def prompts(self, rows: slice, names: Iterable[StateName]) -> Run:
        """The named states of some of the prompts, without copies."""
        states: dict[StateName, list[Tensor]] = {}
        for name in names:
            states[name] = [state[rows] for state in self.states[name]]
        return Run(self.tokens[rows], self.start, states, self.last[rows])

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
    like: Run | None = None,
    edit: Edit | None = None,
) -> Run:
    """Run prompts of equal length and keep the named states of every layer from `start` on.

    Leading tokens that all prompts share (a header, solved examples) are run once.

    Args:
        like: a run of prompts that have the same tokens before some position, with "k" and "v"
            kept; nothing before the first difference is computed again.
        edit: what it returns of a state goes on, and is kept. It has to do the same to the same
            values: prompts share a prefix, and `like` has to be of the same edit.

    Raises:
        MechnumError: on an unknown state, on `resid_mid` of a parallel block (it does not exist
            there), on tokens outside the vocabulary and on prompts longer than the context.
    """
    wanted = set(keep)
    _check(decoder, tokens, wanted)
    with exact(decoder.device):
        tokens = tokens.to(decoder.device)
        if like is not None:
            split = min(start, first_difference(tokens, like.tokens))
            prefix = _known(like, split)
        elif len(tokens) > 1 and (split := first_difference(tokens, tokens[:1])) > 0:
            names: set[StateName] = {*wanted, "k", "v"}
            prefix = _run_part(decoder, tokens[:1, :split], None, names, start, edit)
        else:
            whole = _run_part(decoder, tokens, None, wanted, start, edit)
            return _joined(tokens, [whole], wanted, start)
        rest = _run_part(decoder, tokens, prefix, wanted, start, edit)
        return _joined(tokens, [prefix, rest], wanted, start)


def first_difference(tokens: Int[Tensor, "prompt pos"], others: Int[Tensor, "#prompt pos"]) -> int:
    """First position at which any prompt differs from its other; the last one where none does."""
    same = (tokens == others).all(dim=0)
    return int(same[:-1].cumprod(0).sum())


@dataclass(frozen=True)
class _Part:
    """A run up to position `end` from where another part ended, its states cut as in `Run`.

    One prompt stands for all where all agree.
    """

    end: int
    states: dict[StateName, list[Tensor]]
    last: Tensor


def _known(run: Run, end: int) -> _Part:
    """Keys and values before `end`, which are those of another run."""
    names: tuple[StateName, ...] = ("k", "v")
    states: dict[StateName, list[Tensor]] = {
        name: [state[:, :end] for state in run.states[name]] for name in names
    }
    return _Part(end, states, run.last[:, :0])


def _run_part(
    decoder: Decoder,
    tokens: Int[Tensor, "prompt pos"],
    before: _Part | None,
    wanted: set[StateName],
    start: int,
    edit: Edit | None,
) -> _Part:
    """The positions after `before`."""
    first = 0 if before is None else before.end
    cut = max(start - first, 0)
    kept: dict[StateName, list[Tensor]] = {name: [] for name in wanted}

    def keep(layer: int, name: StateName, value: Tensor) -> Tensor:
        if edit is not None:
            value = edit(name, layer, value, first)
        if name in wanted:
            # The next layer's input is this layer's output: only a copy keeps them apart.
            kept[name].append(_cut(name, value.squeeze(0), cut).clone())
        return value

    resid = decoder.embed(tokens[:, first:], first)
    for layer in range(decoder.spec.n_layers):
        past = None
        if before is not None and first > 0:
            k, v = before.states["k"][layer], before.states["v"][layer]
            past = KeysValues(_for_all(k, len(tokens)), _for_all(v, len(tokens)))
        resid = decoder.block(layer, resid, past, partial(keep, layer))
        if decoder.weights.blocks[layer].mlp is None:
            keep(layer, "mlp_out", torch.zeros_like(resid))
            for name in NEURON_STATES:
                keep(layer, name, resid.new_zeros(*resid.shape[:-1], 0))
    return _Part(tokens.shape[1], kept, resid[0, :, cut:].clone())


def _joined(
    tokens: Int[Tensor, "prompt pos"], parts: list[_Part], wanted: set[StateName], start: int
) -> Run:
    n_prompts, length = tokens.shape
    if len(parts) == 1:
        return Run(tokens, start, parts[0].states, parts[0].last)

    def join(name: StateName, layer: int) -> Tensor:
        states = [(part, part.states[name][layer]) for part in parts if name in part.states]
        if name != "pattern":
            return torch.cat([_for_all(state, n_prompts) for _, state in states], dim=1)
        # Keys after an earlier part are out of its queries' sight.
        rows = [F.pad(_for_all(state, n_prompts), (0, length - part.end)) for part, state in states]
        return torch.cat(rows, dim=2)

    states: dict[StateName, list[Tensor]] = {}
    for name in wanted:
        states[name] = [join(name, layer) for layer in range(len(parts[-1].states[name]))]
    last = torch.cat([_for_all(part.last, n_prompts) for part in parts], dim=1)
    return Run(tokens, start, states, last)


def _cut(name: StateName, state: Tensor, cut: int) -> Tensor:
    if name in ("k", "v"):
        return state
    return state[:, :, cut:] if name == "pattern" else state[:, cut:]


def _for_all(value: Tensor, n_prompts: int) -> Tensor:
    return value.expand(n_prompts, *value.shape[1:])


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
