"""The progress measures of one net, and along its training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float64, Int

from mechnum.errors import MechnumError
from mechnum.fourier.grid import linear_energy
from mechnum.fourier.spectra import key_frequencies as strong_frequencies
from mechnum.grokking.logits import (
    Logits,
    cosine_logits,
    excluded_logits,
    key_share,
    logit_coefficients,
    restricted_logits,
    variation,
)
from mechnum.grokking.losses import pair_losses
from mechnum.grokking.modulus import checked_keys, checked_pairs, sums
from mechnum.grokking.nets import modular_task, net_from_model
from mechnum.grokking.neurons import (
    direction_shares,
    keys_of,
    neuron_frequencies,
)
from mechnum.grokking.pairs import PairStates, pair_states, readout_rows
from mechnum.grokking.phases import Phases, find_phases
from mechnum.grokking.weights import fourier_gini, numerical_rank, readout_residual
from mechnum.inputs import to_numpy
from mechnum.models.model import Model
from mechnum.patching.provenance import model_attributes
from mechnum.progress import track
from mechnum.tasks.arithmetic import ModularAddition

WELL_EXPLAINED = 0.85
"""Share of a neuron's variance from which on Nanda et al. call it explained by one frequency."""


def progress_measures(
    model: Model,
    task: ModularAddition | None = None,
    keys: Any = None,
    train: Any = None,
    layer: int = -1,
) -> xr.Dataset:
    """The measures of Nanda et al. 2023, sections 4 and 5.1, for one net.

    Args:
        task: `mn.tasks.modular_addition(p)`; what the model was trained on where it says so.
        keys: key frequencies; by default those of the layer's neurons (`key_frequencies`), or of
            the embedding's spectrum in a layer without neurons. Give the final net's for
            checkpoints.
        train: the pairs that the net was trained on: True for each [p, p], or indices a·p + b.
        layer: whose neurons and readout are measured; the last by default.

    Returns:
        Over part ("all", and "train" and "test" where `train` is given): `loss`, `accuracy`,
        `restricted_loss`, `excluded_loss` without all keys, and over key too,
        `excluded_loss_each` without one. Losses are cross-entropies in nats, in float64.
        `cosine_loss` of Σ_keys α_k cos w_k(a + b − c) in the logits' place, which is the same for
        all pairs, and `cosine_share`, its share of the logits' variance. `key_share`: that of the
        key part. `logit_coefficient` over frequency.
        Over neuron: `neuron_frequency`, `neuron_explained`; `explained_neurons`, the share of the
        neurons that are explained to 85 %, and `mean_explained`, both of neurons that vary;
        `n_neurons` over frequency, as in `neuron_frequencies`.
        `gini_W_E`, `gini_W_L`, `readout_rank` (directions that hold 99 % of W_L = W_U · W_out)
        and `readout_residual` (outside the keys), without the final norm where there is one;
        `direction_explained` over (key, wave), see `direction_shares`.
        `squared_weights`: sum over all parameters. Over (layer, head): `attention_explained`, the
        share of the attention from the last token to a that is linear in cos and sin of a and b at
        one frequency, and `attention_frequency`. NaN where something does not vary.

    Raises:
        MechnumError: on a model without such a task, on weights that are not finite, on a p that is
            no prime ≥ 3, on keys that are not its frequencies, on a split without a part.
    """
    task = modular_task(model, task)
    p = task.p
    said = model_attributes(model)
    embeddings = net_from_model(model, task).embeddings_a
    parts = _parts(train, p)
    states = pair_states(model, task, layer)
    rows = to_numpy(embeddings)
    of_neurons = neuron_frequencies(states.neurons) if states.neurons.shape[2] else None
    keys, source = _keys(keys, of_neurons, rows)
    data = {
        **_losses(states.logits, keys, parts),
        **_cosines(states.logits, keys),
        "key_share": key_share(states.logits, keys),
        **_neurons(of_neurons),
        "gini_W_E": fourier_gini(rows),
        **_readout(model, states, keys, layer),
        "squared_weights": sum(
            float(w.detach().double().square().sum()) for w in model.wrapped.parameters()
        ),
        **_attention(states),
    }
    return xr.Dataset(
        data,
        coords={
            "part": list(parts),
            "key": keys,
            "frequency": np.arange(1, p // 2 + 1),
            "wave": ["sine", "cosine"],
        },
        attrs={**said, "task": task.name, "neurons_of_layer": layer, "keys_from": source},
    )


def progress_over(
    checkpoints: Iterable[tuple[int, Model]],
    task: ModularAddition | None = None,
    keys: Any = None,
    train: Any = None,
    layer: int = -1,
) -> xr.Dataset:
    """`progress_measures` of each checkpoint, over step.

    Args:
        checkpoints: (step, model), with rising steps. Models may be loaded as they are asked for.
        keys: those of all checkpoints; by default the last one's, for which the checkpoints have to
            be a sequence.
        task, train, layer: as in `progress_measures`.

    Raises:
        MechnumError: on no checkpoint, on steps that do not rise, on a generator without keys, and
            as `progress_measures`.
    """
    if keys is None:
        if not isinstance(checkpoints, Sequence):
            raise MechnumError(
                "the keys are the last checkpoint's, which a generator has not got to yet: give "
                "`keys`, or a list"
            )
        if len(checkpoints):
            keys = progress_measures(checkpoints[-1][1], task, None, train, layer)["key"].values
    total = len(checkpoints) if isinstance(checkpoints, Sequence) else 0
    steps, measures = [], []
    for step, model in track(checkpoints, "progress measures", total):
        if steps and step <= steps[-1]:
            raise MechnumError(f"step {step} comes after step {steps[-1]}: give rising steps")
        steps.append(step)
        measures.append(progress_measures(model, task, keys, train, layer))
    if not steps:
        raise MechnumError("there are no checkpoints: give at least one (step, model)")
    stacked = xr.concat(measures, "step", combine_attrs="drop_conflicts", join="exact")
    return stacked.assign_coords(step=steps)


def phases_of(measures: xr.Dataset) -> Phases:
    """`find_phases` of what `progress_over` gave with a split.

    Raises:
        MechnumError: without a split or steps, and on fewer than 3 checkpoints.
    """
    if "step" not in measures.dims or "test" not in measures["part"]:
        raise MechnumError(
            "phases need checkpoints and a split: give progress_over the pairs of `train`"
        )
    return find_phases(
        measures["step"].values,
        measures["restricted_loss"].sel(part="test").values,
        measures["excluded_loss"].sel(part="train").values,
        measures["loss"].sel(part="test").values,
    )


def _parts(train: Any, p: int) -> dict[str, Bool[np.ndarray, "p p"]]:
    parts = {"all": checked_pairs(None, p)}
    if train is not None:
        inside = checked_pairs(train, p)
        if inside.all():
            raise MechnumError("all pairs are trained on, which leaves none to test: omit `train`")
        parts |= {"train": inside, "test": ~inside}
    return parts


def _losses(
    logits: Logits, keys: Int[np.ndarray, " key"], parts: dict[str, Bool[np.ndarray, "p p"]]
) -> dict[str, Any]:
    def by_part(values: np.ndarray) -> list[float]:
        return [float(values[part].mean()) for part in parts.values()]

    each = [by_part(pair_losses(excluded_logits(logits, [k]))) for k in keys]
    return {
        "loss": ("part", by_part(pair_losses(logits))),
        "accuracy": ("part", by_part(logits.argmax(axis=-1) == sums(len(logits)))),
        "restricted_loss": ("part", by_part(pair_losses(restricted_logits(logits, keys)))),
        "excluded_loss": ("part", by_part(pair_losses(excluded_logits(logits, keys)))),
        "excluded_loss_each": (("key", "part"), each),
    }


def _cosines(logits: Logits, keys: Int[np.ndarray, " key"]) -> dict[str, Any]:
    p = len(logits)
    coefficients = logit_coefficients(logits)
    whole = variation(logits)
    by_error = cosine_logits(coefficients, keys, p)
    wrong: Float64[np.ndarray, " error"] = by_error[1:] - by_error[0]
    return {
        "logit_coefficient": ("frequency", coefficients),
        "cosine_loss": float(np.logaddexp.reduce([0.0, *wrong])),
        "cosine_share": float(np.sum(coefficients[keys - 1] ** 2) / whole) if whole else np.nan,
    }


def _neurons(found: xr.Dataset | None) -> dict[str, Any]:
    if found is None:
        return {}
    explained = found["explained"]
    return {
        "neuron_frequency": found["best_frequency"],
        "neuron_explained": explained,
        "explained_neurons": (explained >= WELL_EXPLAINED).where(explained.notnull()).mean(),
        "mean_explained": explained.mean(),
        "n_neurons": found["n_neurons"],
    }


def _keys(
    given: Any, of_neurons: xr.Dataset | None, embeddings: np.ndarray
) -> tuple[Int[np.ndarray, " key"], str]:
    """The key frequencies and what they are from."""
    if given is not None:
        return checked_keys(given, len(embeddings)), "given"
    if of_neurons is not None:
        return keys_of(of_neurons), "neurons"
    keys = strong_frequencies(embeddings)
    if not len(keys):
        raise MechnumError("neither neurons nor the embedding have key frequencies: give `keys`")
    return keys, "embedding"


def _readout(
    model: Model, states: PairStates, keys: Int[np.ndarray, " key"], layer: int
) -> dict[str, Any]:
    readout = readout_rows(model, states.classes, layer)
    if readout is None:
        return {}
    return {
        "gini_W_L": fourier_gini(readout),
        "readout_rank": numerical_rank(readout),
        "readout_residual": readout_residual(readout, keys),
        "direction_explained": (("key", "wave"), direction_shares(states.neurons, readout, keys)),
    }


def _attention(states: PairStates) -> dict[str, Any]:
    shares = linear_energy(states.pattern)
    best = np.where(np.isnan(shares).any(axis=0), 0, 1 + np.nan_to_num(shares).argmax(axis=0))
    return {
        "attention_explained": (("layer", "head"), shares.max(axis=0)),
        "attention_frequency": (("layer", "head"), best),
    }
