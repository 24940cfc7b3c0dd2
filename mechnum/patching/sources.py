"""The two runs of a batch: the one that is patched, and what its values are replaced with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder, StateName
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.models.run import Run, first_difference, run
from mechnum.patching.batches import Batch, Direction, is_everywhere, pair_batches
from mechnum.patching.local import Place
from mechnum.patching.propagate import states_for
from mechnum.patching.values import (
    MeanOfStates,
    MeanOver,
    MeanValues,
    RunValues,
    ValueName,
    Values,
    ZeroValues,
)
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs


@dataclass(frozen=True)
class Source:
    """What a measurement puts in, for any batch of its pairs.

    Attributes:
        position, direction, values: as asked for.
        base_states, value_states: what the two runs keep.
        means: of the base prompts, for values "mean".
        partners: for values "resample", the tokens of another pair's base prompt, by pair index.
        pair_bytes: what the measurement holds for one pair, besides its runs.
    """

    decoder: Decoder
    position: str | int
    direction: Direction
    values: ValueName
    base_states: tuple[StateName, ...]
    value_states: tuple[StateName, ...]
    means: Mapping[tuple[StateName, int], Tensor]
    partners: Mapping[int, Tensor]
    pair_bytes: int

    def place(self, batch: Batch) -> tuple[Place, Run]:
        """The batch's base run with the values beside it, and the run of the other prompts."""
        keep = self.value_states if self.values == "other" else ()
        base, other = _two_runs(self.decoder, batch, self.base_states, keep)
        return Place(
            self.decoder, base, self._values(batch, base, other), is_everywhere(self.position)
        ), other

    def _values(self, batch: Batch, base: Run, other: Run) -> Values:
        if self.values == "other":
            return RunValues(other)
        if self.values == "zero":
            return ZeroValues(base)
        if self.values == "mean":
            return MeanValues(base, self.means)
        drawn = torch.stack([self.partners[pair] for pair in batch.index.tolist()])
        return RunValues(run(self.decoder, drawn, self.value_states, batch.position))


def _two_runs(
    decoder: Decoder,
    batch: Batch,
    base_states: tuple[StateName, ...],
    other_states: tuple[StateName, ...],
) -> tuple[Run, Run]:
    """The base run and the other prompts' run, which computes only what differs."""
    shared = first_difference(batch.base, batch.base[:1]) if len(batch.base) > 1 else 0
    if first_difference(batch.base, batch.other) > shared:
        base = run(decoder, batch.base, base_states, batch.position)
        return base, run(decoder, batch.other, other_states, batch.position, like=base)
    # All of them part at the same token: together they read the weights once.
    tokens = torch.cat([batch.base, batch.other])
    both = run(decoder, tokens, {*base_states, *other_states}, batch.position)
    n_pairs = len(batch.base)
    return both.prompts(slice(n_pairs), base_states), both.prompts(
        slice(n_pairs, None), other_states
    )


def source(
    model: Model,
    pairs: Pairs,
    position: str | int,
    direction: Direction,
    values: ValueName,
    mean_over: MeanOver,
    base_states: set[StateName],
    value_states: set[StateName],
    seed: int,
    pair_bytes: int = 0,
) -> Source:
    """Prepare what is put in: means are taken and prompts drawn over all pairs, once.

    Raises:
        MechnumError: on unknown values or means, where no other prompt of equal length exists to
            draw from, and where attention patterns of different lengths would be averaged.
    """
    if values not in get_args(ValueName):
        raise MechnumError(
            f"unknown values {values!r}: use one of {', '.join(get_args(ValueName))}"
        )
    if mean_over not in get_args(MeanOver):
        raise MechnumError(
            f"unknown mean_over {mean_over!r}: use one of {', '.join(get_args(MeanOver))}"
        )
    base_states = {*base_states, *states_for(model.decoder)}
    means: Mapping[tuple[StateName, int], Tensor] = {}
    partners: Mapping[int, Tensor] = {}
    if values == "mean":
        means = _means(model, pairs, position, direction, mean_over, value_states)
    if values == "resample":
        partners = _partners(pairs, direction, seed)
    return Source(
        model.decoder,
        position,
        direction,
        values,
        tuple(sorted(base_states)),
        tuple(sorted(value_states)),
        means,
        partners,
        pair_bytes,
    )


def source_batches(model: Model, pairs: Pairs, given: Source) -> list[Batch]:
    """The pairs in batches whose runs fit the memory budget."""
    states: set[StateName] = {*given.base_states, *given.value_states}
    return list(
        pair_batches(
            model,
            pairs,
            given.position,
            given.direction,
            states,
            from_the_first=given.values != "other",
            pair_bytes=given.pair_bytes,
        )
    )


def _means(
    model: Model,
    pairs: Pairs,
    position: str | int,
    direction: Direction,
    mean_over: MeanOver,
    states: set[StateName],
) -> dict[tuple[StateName, int], Tensor]:
    """Means over the base prompts, of the patched position or of every one."""
    lengths = {group.clean.tokens.shape[1] for group in pairs.groups}
    if "pattern" in states and (len(lengths) > 1 or mean_over != "position"):
        raise MechnumError(
            "attention patterns of different lengths have no mean: use pairs of one token count "
            "and mean_over='position'"
        )
    named = not is_everywhere(position) and mean_over == "position"
    where = position if named else "all"
    running = MeanOfStates(mean_over)
    names: tuple[StateName, ...] = (*states, "k", "v")
    parts = list(pair_batches(model, pairs, where, direction, names, from_the_first=True))
    for batch in track(parts, "means"):
        with exact(model.device):
            kept = run(model.decoder, batch.base, names, batch.position)
            if named:
                # The named position alone, wherever it lies in prompts of this length.
                kept = _only_first(kept)
            running.add(kept, states, model.spec.n_layers)
    return running.means()


def _only_first(kept: Run) -> Run:
    states: dict[StateName, list[Tensor]] = {
        name: [
            layer[:, :, :1]
            if name == "pattern"
            else layer[:, : kept.start + 1]
            if name in ("k", "v")
            else layer[:, :1]
            for layer in layers
        ]
        for name, layers in kept.states.items()
    }
    return Run(kept.tokens, kept.start, states, kept.last[:, :1])


def _partners(pairs: Pairs, direction: Direction, seed: int) -> dict[int, Tensor]:
    """For each pair the base prompt of another pair of equal token count, drawn at random."""
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    partners: dict[int, Tensor] = {}
    for group in pairs.groups:
        tokens = group.corrupt.tokens if direction == "denoise" else group.clean.tokens
        if len(group) < 2:
            raise MechnumError(
                f"only one pair has {tokens.shape[1]} tokens, so there is no other prompt to "
                "resample from: use more pairs or another kind of values"
            )
        # A cycle through all pairs in random order gives nobody itself.
        order = generator.permutation(len(group))
        for receiver, giver in zip(order, np.roll(order, -1), strict=True):
            partners[int(group.index[receiver])] = tokens[giver]
    return partners
