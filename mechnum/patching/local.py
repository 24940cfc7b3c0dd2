"""What a patch changes where it is made: the difference that it writes to the residual stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.decoder import Decoder, StateName
from mechnum.models.run import Run
from mechnum.patching.nodes import GROUPED, NodeKind, n_parts, written_at
from mechnum.patching.propagate import Patches
from mechnum.patching.values import Values, kept

# States in whose place a patch of this kind puts other values.
_REPLACED: dict[NodeKind, tuple[StateName, ...]] = {
    "head": ("z",),
    "q": ("q",),
    "k": ("k",),
    "v": ("v",),
    "kv": ("k", "v"),
    "pattern": ("pattern",),
    "attn": ("attn_out",),
    "mlp": ("mlp_out",),
    "neuron": ("mlp_hidden",),
    "embed": ("resid_pre",),
    "resid_pre": ("resid_pre",),
    "resid_mid": ("resid_mid",),
    "resid_post": ("resid_post",),
}
_IN_ATTENTION: frozenset[NodeKind] = frozenset({"head", "q", "k", "v", "kv", "pattern"})


def replaced_states(kind: NodeKind) -> tuple[StateName, ...]:
    """The states that the run which values come from must keep."""
    return _REPLACED[kind]


def base_states(kind: NodeKind) -> tuple[StateName, ...]:
    """The states that the base run must keep, besides those for `propagate`."""
    if kind == "head" or kind not in _IN_ATTENTION:
        return _REPLACED[kind]
    return ("pattern", "v") if kind in ("v", "pattern") else ("q", "k", "v")


def states_to_keep(kinds: Iterable[NodeKind]) -> tuple[set[StateName], set[StateName]]:
    """`base_states` and `replaced_states` of several kinds."""
    every = list(kinds)
    return (
        {name for kind in every for name in base_states(kind)},
        {name for kind in every for name in replaced_states(kind)},
    )


@dataclass(frozen=True)
class Place:
    """The runs of a batch of pairs, and where in them values are replaced.

    Attributes:
        base: the run that is patched, from the first patched position on.
        values: what is put in.
        everywhere: at all kept positions together, rather than at the first one alone.
    """

    decoder: Decoder
    base: Run
    values: Values
    everywhere: bool

    @property
    def wide(self) -> torch.dtype:
        """Of differences: small ones of states that may be bfloat16."""
        return torch.promote_types(self.decoder.dtype, torch.float32)

    def replaced(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """The base run's state with the values in its place."""
        values = self.values.at(name, layer)
        if self.everywhere:
            return values
        state = kept(self.base, name, layer).clone()
        state[:, 0] = values[:, 0]
        return state

    def difference(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """What replacing the state changes in it."""
        new, old = self.values.at(name, layer), kept(self.base, name, layer)
        difference = new.to(self.wide) - old.to(self.wide)
        if not self.everywhere:
            difference[:, 1:] = 0
        return difference

    def at(self, position: int) -> Place:
        """The same with the patch at one later position."""
        return Place(
            self.decoder,
            self.base.from_position(position),
            self.values.from_position(position),
            everywhere=False,
        )


@dataclass(frozen=True)
class LocalDifference:
    """What patches of one kind in one layer write, each for itself.

    Attributes:
        point: where the writes enter the residual stream.
        weights: of what is written: z of heads or groups [pair, pos, part, d_head], activations of
            neurons [pair, pos, neuron], or whole writes [pair, pos, 1, d_model].
        directions: what the weights multiply: W_O of the parts or rows of W_out; None for whole
            writes.
    """

    point: int
    weights: Float[Tensor, "pair pos ..."]
    directions: Tensor | None

    @property
    def n_rows(self) -> int:
        """How many patches."""
        return self.weights.shape[2]

    def write(
        self, rows: slice, positions: slice = slice(None)
    ) -> Float[Tensor, "row pair pos d_model"]:
        """The difference in the residual stream that each of the rows makes."""
        weights = self.weights[:, positions]
        if self.directions is None:
            return weights[:, :, rows].permute(2, 0, 1, 3)
        directions = self.directions[rows]
        if self.of_neurons:
            return torch.einsum("ptn,nm->nptm", weights[..., rows], directions.to(weights.dtype))
        return torch.einsum("pthd,hdm->hptm", weights[:, :, rows], directions.to(weights.dtype))

    @property
    def of_neurons(self) -> bool:
        """Whether each row is a direction with one weight."""
        return self.directions is not None and self.directions.ndim == 2

    def nonzero(self) -> Int[Tensor, " row"]:
        """Rows that change anything; the others' effects are exactly zero."""
        changes = (self.weights != 0).transpose(0, 2).flatten(1).any(1)
        return changes.nonzero().flatten()

    def select(self, rows: Int[Tensor, " row"]) -> LocalDifference:
        """Some of the rows."""
        directions = None if self.directions is None else self.directions[rows]
        return LocalDifference(self.point, self.weights[:, :, rows], directions)

    def patches(self) -> Patches:
        """For the engine."""
        return Patches(self.point, self.n_rows, self.write)


def local_difference(
    place: Place, kind: NodeKind, layer: int, parts: Int[Tensor, " part"] | None = None
) -> LocalDifference:
    """What the patches of one kind in one layer write.

    Args:
        layer: 0 for the embedding.
        parts: heads, groups or neurons that are wanted; None for all of the layer.
    """
    decoder = place.decoder
    point = written_at(kind, layer, decoder.spec)
    chosen = slice(None) if parts is None else parts.to(decoder.device)
    attn, mlp = decoder.weights.blocks[layer].attn, decoder.weights.blocks[layer].mlp
    if kind in _IN_ATTENTION:
        z = _z_difference(place, kind, layer)
        W_O = attn.W_O
        if kind in GROUPED:
            # A group is one wide head.
            n_groups = n_parts(kind, decoder.spec)
            z = z.unflatten(2, (n_groups, -1)).flatten(3)
            W_O = W_O.unflatten(0, (n_groups, -1)).flatten(1, 2)
        return LocalDifference(point, z[:, :, chosen], W_O[chosen])
    if kind == "neuron":
        assert mlp is not None, "nodes are checked against the model before they are patched"
        hidden = place.difference("mlp_hidden", layer)
        return LocalDifference(point, hidden[..., chosen], mlp.W_out[chosen])
    return LocalDifference(point, place.difference(_REPLACED[kind][0], layer).unsqueeze(2), None)


def _z_difference(
    place: Place, kind: NodeKind, layer: int
) -> Float[Tensor, "pair pos head d_head"]:
    """How z changes when one state of attention is replaced in every head at once.

    Heads do not see each other's states, so that one computation patches each of them alone. Both
    sides of the difference are computed alike: equal values give a difference of exactly zero.
    """
    if kind == "head":
        return place.difference("z", layer)
    decoder, base = place.decoder, place.base
    past = base.past(layer)

    def attend(replaced: tuple[StateName, ...]) -> Tensor:
        def state(name: StateName) -> Tensor:
            value = place.replaced(name, layer) if name in replaced else kept(base, name, layer)
            return value.unsqueeze(0)

        if kind in ("v", "pattern"):
            pattern = state("pattern").transpose(2, 3)
        else:
            pattern = decoder.pattern(state("q"), state("k"), past)
        return decoder.mix(pattern, state("v"), past).squeeze(0).to(place.wide)

    return attend(_REPLACED[kind]) - attend(())
