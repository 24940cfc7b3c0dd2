"""The two runs of a batch: the one that is patched, and what its values are replaced with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder, StateName
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.models.run import Run, first_difference, run
from mechnum.patching.batches import Batch, is_everywhere, pair_batches
from mechnum.patching.intervention import Intervention
from mechnum.patching.local import Place
from mechnum.patching.propagate import states_for
from mechnum.patching.values import (
    MeanOfStates,
    Means,
    MeanValues,
    RunValues,
    Values,
    ZeroValues,
)
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs


@dataclass(frozen=True)
class Source:
    """What a measurement puts in, for any batch of its pairs.

    Attributes:
        base_states, value_states: what the two runs keep.
        means: of the base prompts, for values "mean".
        partners: for values "resample", the tokens of another pair's base prompt, by pair index.
        pair_bytes: what the measurement holds for one pair, besides its runs.
    """

    decoder: Decoder
    intervention: Intervention
    base_states: tuple[StateName, ...]
    value_states: tuple[StateName, ...]
    means: Means | None
    partners: Mapping[int, Tensor]
    pair_bytes: int

    def place(self, batch: Batch) -> tuple[Place, Run]:
        """The batch's base run with the values beside it, and the run of the other prompts."""
        keep = self.value_states if self.intervention.values == "other" else ()
        base, other = _two_runs(self.decoder, batch, self.base_states, keep)
        everywhere = is_everywhere(self.intervention.position)
        return Place(self.decoder, base, self.values(batch, base, other), everywhere), other

    def values(self, batch: Batch, base: Run, other: Run) -> Values:
        """What is put in for the pairs of a batch."""
        kind = self.intervention.values
        if kind == "other":
            return RunValues(other)
        if kind == "zero":
            return ZeroValues(base)
        if kind == "mean":
            assert self.means is not None, "they are taken when a source of means is made"
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
    intervention: Intervention,
    base_states: set[StateName],
    value_states: set[StateName],
    pair_bytes: int = 0,
) -> Source:
    """Prepare what is put in: means are taken and prompts drawn over all pairs, once.

    Raises:
        MechnumError: where no other prompt of equal length exists to draw from, and where
            attention patterns of different lengths would be averaged.
    """
    base_states = {*base_states, *states_for(model.decoder)}
    means = None
    partners: Mapping[int, Tensor] = {}
    if intervention.values == "mean":
        means = _means(model, pairs, intervention, value_states)
    if intervention.values == "resample":
        partners = _partners(pairs, intervention)
    return Source(
        model.decoder,
        intervention,
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
            given.intervention.position,
            given.intervention.direction,
            states,
            from_the_first=given.intervention.values != "other",
            pair_bytes=given.pair_bytes,
        )
    )


def _means(model: Model, pairs: Pairs, intervention: Intervention, states: set[StateName]) -> Means:
    """Means over the base prompts, of the patched position or of every one."""
    lengths = {group.clean.tokens.shape[1] for group in pairs.groups}
    over, position = intervention.mean_over, intervention.position
    if "pattern" in states and (len(lengths) > 1 or over != "position"):
        raise MechnumError(
            "attention patterns have a mean only over pairs of one token count, position by "
            "position: use such pairs and mean_over='position'"
        )
    # The named position alone, wherever it lies in each prompt.
    named = not is_everywhere(position) and over == "position"
    where = position if named else "all"
    one_place = over == "position" and len(lengths) == 1
    running = MeanOfStates(over, None if one_place else model.decoder)
    names: tuple[StateName, ...] = (*states, "k", "v")
    direction = intervention.direction
    parts = list(pair_batches(model, pairs, where, direction, names, from_the_first=True))
    for batch in track(parts, "means"):
        with exact(model.device):
            kept = run(model.decoder, batch.base, names, batch.position)
            running.add(kept, states, model.spec.n_layers, 1 if named else None)
    return running.means()


def _partners(pairs: Pairs, intervention: Intervention) -> dict[int, Tensor]:
    """For each pair the base prompt of another pair of equal token count, drawn at random."""
    generator = np.random.default_rng(np.random.SeedSequence(intervention.seed))
    partners: dict[int, Tensor] = {}
    for group in pairs.groups:
        base = group.corrupt if intervention.direction == "denoise" else group.clean
        tokens = base.tokens
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
