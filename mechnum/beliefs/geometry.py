"""The geometry of beliefs in every layer of a model.

Source: Shai et al. 2024 (arXiv 2405.15943), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Float64
from scipy.special import rel_entr

from mechnum.beliefs.distances import agreement, distances, draw_pairs
from mechnum.beliefs.errors import STATES, Errors, Judge, compared, ends
from mechnum.beliefs.prefixes import Prefixes, prefixes
from mechnum.beliefs.readout import CUTOFFS
from mechnum.beliefs.states import check_reads, norms_of, one_hot, prefix_states
from mechnum.beliefs.streams import Stream, stream
from mechnum.beliefs.verdict import BOTH, NEXT_TOKEN, TOKEN, UNTRAINED
from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.models.fresh import untrained as untrained_twin
from mechnum.models.model import Model
from mechnum.patching.provenance import model_attributes
from mechnum.progress import track
from mechnum.tasks.processes.process import Process

ALL, LAST = "all", "last"
PAIRS = 20_000
"""Pairs of prefixes whose distances are compared."""
BLOCKS = 4096
"""Strings of tokens to come whose probabilities are predicted, at most."""


def belief_geometry(
    model: Model,
    process: Process,
    length: int | None = None,
    strings: int = 5000,
    positions: Sequence[int] | None = None,
    readout: Float[np.ndarray, "state coordinate"] | None = None,
    untrained: Model | None = None,
    horizons: int = 5,
    folds: int = 5,
    shuffles: int = 10,
    cutoffs: Sequence[float] = CUTOFFS,
    resamples: int = 1000,
    seed: int = 0,
) -> xr.Dataset:
    """How well beliefs are read from each residual of a model, beside all controls.

    Every prefix of the strings counts once, weighted by its probability; whole strings are held
    out. Process token x is the model's token x.

    Args:
        length: of the strings; the model's context without it.
        strings: all strings of the process where these are no more, else as many that are drawn.
        positions: of the last tokens of the prefixes, from 0; all without it.
        readout: what makes of beliefs the coordinates that are judged, such as `carry_readout()`;
            the beliefs themselves without it.
        untrained: for the control; by default `mechnum.models.untrained(model)`.
        horizons: how many tokens ahead are predicted, at most: as far as there are no more than
            4,096 blocks of as many tokens.
        folds, shuffles, cutoffs, resamples: as in `belief_regression`.
        seed: of strings, folds, shuffles, resamples, pairs, and the untrained net.

    Returns:
        The variables of `belief_regression` over (layer, norm, …). `layer` is "0", "1", … for the
        residual that this block reads, "last" for the one after all blocks, and "all" for all of
        these joined; `norm` is "before" and, in models with norms, "after" the norm that reads it.
        Controls are "shuffled beliefs", "current token", "next-token distribution" (the exact one),
        "token and next-token distribution" (both at once) and "untrained net". Besides:
        `joined_gain` (layer, norm), how much less the MSE from all layers joined is than that from
        this one, with `joined_gain_low` and `joined_gain_high`;
        `future_r2` (…, predictor, horizon), R² of the joint distribution of that many next tokens,
        NaN where it is always the same; `future_information` (horizon), what the prefix says about
        these tokens, in nats; `distance_r2` (…, space, target), squared
        correlation of distances between prefixes, among the `states` or the `predicted` beliefs,
        with those among true "beliefs" and "next-token distributions".
        Over `prefix`: `belief` (…, coordinate), `weight`, `position`, `token`, `string`, and
        `predicted` (layer, norm, prefix, coordinate).

    Raises:
        MechnumError: where the model cannot read the strings, on sizes below 1, on unknown
            positions, and where an untrained net can neither be made nor is given.
        InvalidInput: as `belief_regression`.
    """
    length = model.spec.n_ctx if length is None else length
    check_reads(model, process, length)
    for name, value in (("shuffles", shuffles), ("resamples", resamples), ("horizons", horizons)):
        positive_integer(name, value)
    places = None if positions is None else tuple(int(position) for position in positions)
    found = prefixes(process, length, strings, seed, places)
    rows = found.rows(folds, cutoffs, seed)
    coordinates = np.eye(process.n_states) if readout is None else checked_readout(readout, process)
    ahead = block_readouts(process, horizons)
    judge = Judge(rows, found.beliefs, (coordinates, *ahead), shuffles)
    twin = untrained_twin(model, seed) if untrained is None else untrained
    check_reads(twin, process, length)
    own, fresh = prefix_states(model, found), prefix_states(twin, found)
    if own.shape[:2] != fresh.shape[:2]:
        raise MechnumError(
            f"{twin.name} has other layers or norms than {model.name}: give an untrained net of "
            "the same shape"
        )
    layers = [*(str(layer) for layer in range(model.spec.n_layers)), LAST, ALL]
    table = _of_places(judge, found, _places(own), _places(fresh), len(layers), resamples)
    grid = _as_grid(table, norms_of(model), layers)
    return (
        grid.assign(_of_prefixes(found, judge, ahead))
        .assign_coords(
            horizon=np.arange(1, len(ahead) + 1),
            coordinate=coordinate_names(process, readout),
        )
        .assign_attrs(
            {
                **model_attributes(model),
                "process": process.name,
                "untrained": twin.name,
                "length": length,
                "n_strings": len(found.strings),
                "strings": "all" if found.exact else "sampled",
                "positions": sorted({int(position) for position in found.position}),
                "folds": folds,
                "shuffles": shuffles,
                "cutoffs": list(cutoffs),
                "resamples": resamples,
                "seed": seed,
                "estimand": "beliefs from residuals, out of fold",
            }
        )
    )


def block_readouts(process: Process, horizons: int) -> list[Float64[np.ndarray, "state _"]]:
    """What makes of a belief the distribution of the next 1, 2, … tokens together.

    Jointly, since each of them alone may be a fair coin whatever came before, as in RRXOR.
    """
    found = [process.emission]
    blocks = process.matrices
    while len(found) < horizons and len(blocks) * process.n_tokens <= BLOCKS:
        blocks = np.concatenate([blocks @ own for own in process.matrices])
        blocks = blocks[blocks.any(axis=(1, 2))]
        found.append(blocks.sum(axis=2).T)
    return found


def _of_places(
    judge: Judge,
    found: Prefixes,
    places: Sequence[np.ndarray],
    others: Sequence[np.ndarray],
    n_layers: int,
    resamples: int,
) -> xr.Dataset:
    """All that is measured at each place, from states [prefix, d] of both nets.

    Args:
        n_layers: of each norm, the last of which is all joined.
    """
    process = found.process
    token = one_hot(found.token, process.n_tokens)
    following = process.next_token(found.beliefs)
    shared = {
        TOKEN: judge.predicted(token),
        NEXT_TOKEN: judge.predicted(following),
        BOTH: judge.predicted(np.hstack([token, following])),
    }
    pairs = draw_pairs(found.weights, PAIRS, stream(judge.rows.seed, Stream.PAIRS))
    targets = {
        "beliefs": distances(judge.coordinates, pairs),
        "next-token distributions": distances(following, pairs),
    }
    errors, predicted, near = [], [], []
    both = list(zip(places, others, strict=True))
    for states, fresh in track(both, "regressions on beliefs"):
        control = judge.predicted(fresh.astype(np.float64))
        guess, judged = judge.place(states.astype(np.float64), {**shared, UNTRAINED: control})
        errors.append(judged)
        predicted.append(guess @ judge.outputs[0])
        near.append([agreement(distances(at, pairs), targets) for at in (states, predicted[-1])])
    table = compared(judge, errors, resamples)
    future = table["r2_output"][..., 1:].rename(output="horizon")
    return table.drop_vars("r2_output").assign(
        predicted=(("place", "prefix", "coordinate"), np.array(predicted)),
        distance_r2=(("place", "space", "target"), np.array(near)),
        future_r2=future,
        **_beside_joined(judge, errors, n_layers, resamples),
        space=["states", "predicted"],
        target=list(targets),
    )


def _beside_joined(
    judge: Judge, errors: Sequence[Mapping[str, Errors]], n_layers: int, resamples: int
) -> dict[str, Any]:
    """What the error from a layer is more than that from all layers joined, of the same norm."""
    sums = np.array([own[STATES].sums for own in errors])
    by_layer = sums.reshape(-1, n_layers, sums.shape[1])
    gap = (by_layer - by_layer[:, -1:]).reshape(sums.shape)
    low, high = ends(judge.rows.resampled(gap.T, resamples))
    found = {"joined_gain": gap.sum(axis=1), "joined_gain_low": low, "joined_gain_high": high}
    return {name: ("place", value) for name, value in found.items()}


def _places(states: Float[np.ndarray, "norm stage prefix d"]) -> list[np.ndarray]:
    """States of each (norm, layer), layers fastest, and at last of all layers joined."""
    return [place for own in states for place in states_of_places(own)]


def states_of_places(states: Float[np.ndarray, "stage prefix d"]) -> list[np.ndarray]:
    """Those of each layer, the last one, and at last all joined."""
    return [*states, np.concatenate(list(states), axis=1)]


def _as_grid(table: xr.Dataset, norms: Sequence[str], layers: Sequence[str]) -> xr.Dataset:
    """`place` as layer and norm."""
    place = np.array([(layer, norm) for norm in norms for layer in layers])
    named = table.assign_coords(layer=("place", place[:, 0]), norm=("place", place[:, 1]))
    grid = named.set_index(place=["layer", "norm"]).unstack("place")
    return grid.reindex(layer=list(layers), norm=list(norms)).transpose("layer", "norm", ...)


def _of_prefixes(found: Prefixes, judge: Judge, ahead: Sequence[np.ndarray]) -> dict[str, Any]:
    """What is known of the prefixes themselves."""
    information = []
    for matrix in ahead:
        distribution = found.beliefs @ matrix
        marginal = judge.rows.mean(distribution)
        gap = rel_entr(distribution, np.broadcast_to(marginal, distribution.shape))
        information.append(float(judge.rows.mean(gap.sum(axis=1))))
    return {
        "future_information": ("horizon", information),
        "belief": (("prefix", "coordinate"), judge.coordinates),
        "weight": ("prefix", found.weights),
        "position": ("prefix", found.position),
        "token": ("prefix", found.token),
        "string": ("prefix", found.string),
    }


def checked_readout(readout: Any, process: Process) -> Float64[np.ndarray, "state coordinate"]:
    """A matrix that makes coordinates of beliefs.

    Raises:
        MechnumError: where it does not fit the process' states.
    """
    matrix = np.asarray(readout, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != process.n_states or not matrix.size:
        raise MechnumError(
            f"a readout of shape {matrix.shape} does not fit {process.n_states} hidden states: "
            "give [state, coordinate]"
        )
    return matrix


def coordinate_names(process: Process, readout: Any) -> list[str]:
    """The states', or numbers where a readout mixes them."""
    if readout is None:
        return list(process.states)
    return [str(index) for index in range(np.shape(readout)[1])]
