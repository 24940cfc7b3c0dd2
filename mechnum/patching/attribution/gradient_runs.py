"""The runs at which gradients are taken: the base run, or points between the two prompts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from mechnum.models.decoder import KeysValues
from mechnum.models.memory import block_bytes, rows_at_a_time
from mechnum.models.run import first_difference
from mechnum.models.spec import ModelSpec
from mechnum.patching.attribution.gradients import GradientRuns
from mechnum.patching.local import Place
from mechnum.patching.values import RunValues


def gradient_runs(place: Place, ig_steps: int | None) -> Iterator[GradientRuns]:
    """The runs, some at a time; their shares add up to 1.

    Args:
        ig_steps: how many points lie between the prompts of each pair; None for the base run.
    """
    if ig_steps is None:
        yield _base_run(place)
        return
    start = min(place.base.start, first_difference(place.base.tokens, _other_tokens(place)))
    n_pairs, length = place.base.tokens.shape
    size = rows_at_a_time(n_pairs * gradient_bytes(place.decoder.spec, length - start, length))
    for points in torch.arange(ig_steps).split(size):
        yield _between(place, start, points / ig_steps, 1 / ig_steps)


def gradient_bytes(spec: ModelSpec, n_positions: int, n_keys: int) -> int:
    """About what one run with its gradients holds for one pair, in bytes of float32."""
    # The inputs of all layers, and the graph and the gradients of one block.
    inputs = 4 * (spec.n_layers + 1) * n_positions * spec.d_model
    return inputs + 3 * block_bytes(spec, n_positions, n_keys)


def _base_run(place: Place) -> GradientRuns:
    base, layers = place.base, range(place.decoder.spec.n_layers)
    return GradientRuns(
        place.decoder,
        base.start,
        [base["resid_pre", layer].unsqueeze(0) for layer in layers],
        base.last.unsqueeze(0),
        [base.past(layer) for layer in layers],
        share=1.0,
    )


def _other_tokens(place: Place) -> torch.Tensor:
    assert isinstance(place.values, RunValues), "points lie between two prompts"
    return place.values.run.tokens


def _between(place: Place, start: int, shares: torch.Tensor, share: float) -> GradientRuns:
    """Runs whose embeddings are the other prompt's + `shares` × (base prompt's − other prompt's).

    The prompts do not differ before `start`, so that keys and values there are the base run's.
    """
    decoder, base = place.decoder, place.base
    own = decoder.embed(base.tokens[:, start:], start).to(place.wide)
    other = decoder.embed(_other_tokens(place)[:, start:], start).to(place.wide)
    on_the_way = shares.to(own).view(-1, 1, 1, 1)
    resid = (other + on_the_way * (own - other)).to(decoder.dtype)
    inputs, past = [], []
    for layer in range(decoder.spec.n_layers):
        k, v = base["k", layer][:, :start], base["v", layer][:, :start]
        past.append(KeysValues(k, v) if start else None)
        inputs.append(resid)
        resid = decoder.block(layer, resid, past[layer])
    return GradientRuns(decoder, start, inputs, resid, past, share)
