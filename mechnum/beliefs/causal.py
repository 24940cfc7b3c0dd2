"""The causal test: what follows when a state is given another history's belief.

Beliefs are moved along the directions that they are written in, by regression of states on beliefs.
The weights of the opposite regression are no such directions (Haufe et al. 2014): beliefs are told
best from all else along them, and states may hardly vary there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int64
from scipy.special import rel_entr
from torch import Tensor

from mechnum.beliefs.prefixes import prefixes
from mechnum.beliefs.readout import CUTOFFS, BeliefReadout
from mechnum.beliefs.states import check_reads, prefix_states
from mechnum.beliefs.streams import Stream, stream
from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.patching.provenance import model_attributes
from mechnum.progress import track
from mechnum.tasks.processes.process import Process

PATCHES = ("none", "belief", "readout", "random", "state", "target run")
_DRAWS = 50  # Candidates for each pair that is asked for.
_DIFFERENT = 1e-6


@dataclass(frozen=True, eq=False)
class Histories:
    """Pairs of strings that differ up to `position` and go on in the same way.

    Attributes:
        base, target: token ids.
        shift: the target's belief minus the base's, after `position`.
        wanted: distributions of the next token after the target's, from `position` on.
    """

    base: Int64[np.ndarray, "pair pos"]
    target: Int64[np.ndarray, "pair pos"]
    shift: Float64[np.ndarray, "pair state"]
    wanted: Float64[np.ndarray, "pair step token"]


def belief_patching(
    model: Model,
    process: Process,
    position: int | None = None,
    length: int | None = None,
    layers: Sequence[int] | None = None,
    n: int = 200,
    strings: int = 2000,
    cutoffs: Sequence[float] = CUTOFFS,
    seed: int = 0,
) -> xr.Dataset:
    """Replace the belief in a state by another history's; do later predictions follow?

    At one position of the residual that one block reads, the base history's state a becomes
    a + A(b′ − b), with b and b′ the beliefs of the base and the target history and A from the
    regression of states on beliefs; all after it is recomputed. From then on both histories go on
    with the same tokens, and at each of these steps the model's distribution of the next token is
    compared with the exact one after the target's history. Later positions still see the base
    history's own tokens by attention.

    Args:
        position: of the last token of the histories; the middle without it.
        length: of the strings; the model's context without it.
        layers: blocks whose input is patched, and n_layers for the last residual; all without it.
        n: pairs of histories, drawn so that both can go on with the same tokens and that their
            beliefs differ.
        strings: as in `belief_geometry`, for the regression, which sees all positions.
        cutoffs: as in `belief_regression`.
        seed: of strings, pairs and random subspaces.

    Returns:
        `kl` over (layer, patch, pair, step), in nats: Σ P log(P / Q) with P the exact distribution
        after the target's history and Q the model's, `step` 0 being the patched position. Patches:
        "none", the base run; "belief"; "readout", the target's part in the subspace that beliefs
        are read from; "random", its part in as many random directions, anew for each pair;
        "state", all of it; "target run", the target's own run, which is as low as this model goes.
        `followed` (layer, patch, step): how much of the way from "none" to "target run" the mean KL
        goes, NaN where the two are no further apart than 1e-6 nats. `dimensions` (layer): size of
        the readout's subspace, 0 where beliefs cannot be read at all.

    Raises:
        MechnumError: where the model cannot read the strings, on unknown layers and positions, on
            sizes below 1, and where too few pairs of histories fit, as where beliefs never change.
    """
    spec = model.spec
    length = spec.n_ctx if length is None else length
    check_reads(model, process, length)
    at = (length - 1) // 2 if position is None else position
    if not 0 <= at < length:
        raise MechnumError(
            f"strings of {length} tokens have no position {at}: use 0 to {length - 1}"
        )
    chosen = list(range(spec.n_layers + 1)) if layers is None else [int(one) for one in layers]
    unknown = [layer for layer in chosen if not 0 <= layer <= spec.n_layers]
    if unknown or not chosen:
        raise MechnumError(
            f"layers {chosen} are not all there: use 0 to {spec.n_layers}, the last residual"
        )
    drawn = stream(seed, Stream.HISTORIES)
    pairs = draw_histories(process, at, length, positive_integer("n", n), drawn)
    found = prefixes(process, length, strings, seed, None)
    states = prefix_states(model, found)[0]
    rows = found.rows(5, cutoffs, seed)
    generator = np.random.default_rng(stream(seed, Stream.SUBSPACES))
    kl = np.empty((len(chosen), len(PATCHES), len(pairs.base), length - at))
    dimensions = []
    for index, layer in enumerate(track(chosen, "patching beliefs")):
        own = states[layer].astype(np.float64)
        cutoff = rows.folds.best_cutoff(own, found.beliefs)
        subspace = BeliefReadout(cutoff).fit(own, found.beliefs, found.weights).subspace()
        dimensions.append(len(subspace))
        # The same regression the other way round; beliefs that sum to 1 leave one direction out.
        written = BeliefReadout().fit(found.beliefs, own, found.weights).coef_
        kl[index] = _patched(model, pairs, layer, at, written, subspace, generator)
    mean = kl.mean(axis=2)
    way = mean[:, :1] - mean[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        followed = np.where(way > _DIFFERENT, (mean[:, :1] - mean) / way, np.nan)
    return xr.Dataset(
        {
            "kl": (("layer", "patch", "pair", "step"), kl, {"units": "nats"}),
            "followed": (("layer", "patch", "step"), followed),
            "dimensions": ("layer", dimensions),
        },
        coords={"layer": chosen, "patch": list(PATCHES), "step": np.arange(length - at)},
        attrs={
            **model_attributes(model),
            "process": process.name,
            "position": at,
            "length": length,
            "n_pairs": len(pairs.base),
            "n_fit": len(found),
            "cutoffs": list(cutoffs),
            "seed": seed,
        },
    )


def draw_histories(
    process: Process, position: int, length: int, n: int, seed: np.random.SeedSequence
) -> Histories:
    """Base histories that are drawn, and strings of the process as targets, which both go on like.

    Raises:
        MechnumError: where fewer than `n` pairs are found among 50 times as many.
    """
    of_base, of_target = seed.spawn(2)
    target = process.sample(_DRAWS * n, length, of_target)
    base = target.copy()
    base[:, : position + 1] = process.sample(_DRAWS * n, position + 1, of_base)
    beliefs = process.beliefs(target)
    before = process.beliefs(base[:, : position + 1])[:, -1]
    fits = np.linalg.norm(before - beliefs[:, position + 1], axis=1) > _DIFFERENT
    fits &= np.isfinite(process.log_likelihood(base))
    rows = np.flatnonzero(fits)[:n]
    if len(rows) < n:
        raise MechnumError(
            f"{len(rows)} of {_DRAWS * n} pairs of histories of {process.name} have different "
            f"beliefs at position {position} and can go on alike: ask for fewer pairs, or another "
            "position"
        )
    after = beliefs[rows, position + 1 :]
    shift = after[:, 0] - before[rows]
    return Histories(base[rows], target[rows], shift, process.next_token(after))


def _patched(
    model: Model,
    pairs: Histories,
    layer: int,
    position: int,
    written: Float64[np.ndarray, "d state"],
    subspace: Float64[np.ndarray, "direction d"],
    generator: np.random.Generator,
) -> Float64[np.ndarray, "patch pair step"]:
    """KL of all patches at one layer."""
    spec = model.spec
    length = pairs.base.shape[1]
    kl = np.empty((len(PATCHES), len(pairs.base), length - position))
    row_bytes = 2 * len(PATCHES) * block_bytes(spec, length, length)
    for rows in batches(len(pairs.base), row_bytes):
        base, target = (
            _resid(model, torch.from_numpy(own[rows]), layer) for own in (pairs.base, pairs.target)
        )
        change = (target[:, position] - base[:, position]).double().cpu().numpy()
        drawn = generator.standard_normal((len(change), spec.d_model, len(subspace)))
        turned = np.linalg.qr(drawn)[0]
        parts = {
            "none": np.zeros_like(change),
            "belief": pairs.shift[rows] @ written.T,
            "readout": change @ subspace.T @ subspace,
            "random": np.einsum("pdk,pek,pe->pd", turned, turned, change),
            "state": change,
        }
        stack = torch.stack([*(base for _ in parts), target])
        for index, part in enumerate(parts.values()):
            moved = base[:, position].double() + torch.from_numpy(part).to(base.device)
            stack[index, :, position] = moved.to(base.dtype)
        q = _logits(model, stack, layer, position).double().log_softmax(-1).cpu().numpy()
        p = pairs.wanted[rows]
        kl[:, rows] = (rel_entr(p, 1.0) - p * q[..., : p.shape[-1]]).sum(axis=-1)
    return kl


def _resid(model: Model, tokens: Int64[np.ndarray, "..."] | Tensor, layer: int) -> Tensor:
    """The residual that block `layer` reads, or the last one, at all positions."""
    run = model.run(torch.as_tensor(tokens), keep=("resid_pre",))
    return run.last if layer == model.spec.n_layers else run["resid_pre", layer]


def _logits(
    model: Model, stack: Float[Tensor, "patch pair pos d_model"], layer: int, position: int
) -> Float[Tensor, "patch pair step token"]:
    """Logits from `position` on, of residuals that enter block `layer`."""
    decoder: Any = model.decoder
    with exact(model.device):
        for above in range(layer, model.spec.n_layers):
            stack = decoder.block(above, stack)
        return decoder.logits(stack[:, :, position:])
