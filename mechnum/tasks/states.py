"""States of a task's prompts at one position, and the numbers that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.decoder import NEURON_STATES, StateName
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import Run
from mechnum.models.spec import ModelSpec
from mechnum.progress import track
from mechnum.tasks.accuracy import Accuracy
from mechnum.tasks.positions import resolve_position
from mechnum.tasks.prompts import Prompts, TokenSequences


def sample_prompts(
    prompts: Sequence[Prompts], n: int = 500, seed: int = 0, accuracy: Accuracy | None = None
) -> tuple[Prompts, ...]:
    """At most `n` of the prompts, drawn without replacement, in the task's order.

    Kantamneni & Tegmark 2025 fit to 500 prompts that the model answers correctly.

    Args:
        accuracy: where given, only prompts that the model answers correctly are drawn.

    Raises:
        MechnumError: if no prompt is left.
    """
    positive_integer("n", n)
    usable = torch.cat([group.index for group in prompts])
    if accuracy is not None:
        usable = usable[accuracy.correct[usable]]
    if len(usable) == 0:
        raise MechnumError(
            "the model answers none of the prompts correctly: "
            "leave out `accuracy`, or choose a task that it can do"
        )
    order = np.random.default_rng(seed_sequence(seed)).permutation(len(usable))[:n]
    drawn = usable[torch.from_numpy(order)]
    picked = [group.select(torch.isin(group.index, drawn).nonzero().flatten()) for group in prompts]
    return tuple(group for group in picked if len(group))


def states_of(
    model: Model, prompts: Sequence[TokenSequences], position: str | int = "end"
) -> Float32[np.ndarray, "stage prompt d_model"]:
    """The embedding and the state after each layer at one position, group after group.

    Runs in batches; held at a time is the result, 4 bytes a number, and one batch.

    Args:
        position: name of a position of the prompts ("a", "b", "op", "end") or an index, negative
            ones from the end.

    Raises:
        MechnumError: on a position that the prompts do not have, and on tokens that the model
            cannot read.
    """
    n_layers, d_model = model.spec.n_layers, model.spec.d_model
    states = np.empty((n_layers + 1, sum(map(len, prompts)), d_model), dtype=np.float32)
    for rows, run in runs_at(model, prompts, position, ("resid_pre",)):
        entering = [run["resid_pre", layer][:, 0] for layer in range(n_layers)]
        states[:, rows] = torch.stack([*entering, run.last[:, 0]]).float().cpu().numpy()
    return states


def activations_of(
    model: Model, prompts: Sequence[TokenSequences], name: StateName, position: str | int = "end"
) -> Float32[np.ndarray, "layer prompt *width"]:
    """What every layer computes under `name` at one position, group after group.

    Memory as in `states_of`.

    Args:
        name: "attn_out", "mlp_out", "resid_mid", ...: [d_model]; "q", "z": [head, d_head]; "k",
            "v": [kv_head, d_head]; "mlp_pre", "mlp_hidden": [d_mlp]. See `mechnum.models.run.Run`.

    Raises:
        MechnumError: as `states_of`, on states that the model does not have, and on "pattern",
            whose width differs from position to position.
    """
    if name == "pattern":
        raise MechnumError("patterns have no common width: read them from model.run instead")
    spec = model.spec
    width = _width(name, spec)
    states = np.empty((spec.n_layers, sum(map(len, prompts)), *width), dtype=np.float32)
    for rows, run in runs_at(model, prompts, position, (name,)):
        first = run.start if name in ("k", "v") else 0
        own = [run[name, layer][:, first].float().cpu() for layer in range(spec.n_layers)]
        states[:, rows] = torch.stack(own).numpy()
    return states


def runs_at(
    model: Model,
    prompts: Sequence[TokenSequences],
    position: str | int,
    names: Sequence[StateName],
    row_bytes: int = 0,
) -> Iterator[tuple[Int64[np.ndarray, " row"], Run]]:
    """Runs of all prompts in batches that fit the memory budget, from one position on.

    Args:
        names: the states that are kept; their first position is `position`.
        row_bytes: what the caller holds at a time for each prompt besides.

    Yields:
        The rows of the prompts, counted group after group, and their run.

    Raises:
        MechnumError: on a position that the prompts do not have.
    """
    spec = model.spec
    width = sum(math.prod(_width(name, spec)) for name in names)
    before = 0
    todo = []
    for group in prompts:
        length = group.tokens.shape[1]
        places = resolve_position(position, group.positions, length)
        for place in places.unique().tolist():
            rows = (places == place).nonzero().flatten()
            kept_bytes = 4 * spec.n_layers * (length - place) * width + row_bytes
            own_bytes = kept_bytes + block_bytes(spec, length, length)
            todo += [(group, place, before, rows[part]) for part in batches(len(rows), own_bytes)]
        before += len(group)
    for group, place, offset, rows in track(todo, f"states at {position}"):
        yield offset + rows.numpy(), model.run(group.tokens[rows], keep=names, start=place)


def _width(name: StateName, spec: ModelSpec) -> tuple[int, ...]:
    if name in ("q", "z"):
        return spec.n_heads, spec.d_head
    if name in ("k", "v"):
        return spec.n_kv_heads, spec.d_head
    return (spec.d_mlp,) if name in NEURON_STATES else (spec.d_model,)


def numbers_of(
    prompts: Sequence[TokenSequences], variables: Sequence[str]
) -> Float64[np.ndarray, "prompt variable"]:
    """The numbers behind the prompts, group after group.

    Args:
        variables: names of the prompts' variables ("a", "b", "answer"), or sums of them ("a+b").

    Raises:
        MechnumError: on a variable that the prompts do not have.
    """
    if not variables:
        raise MechnumError("no variables to fit: name at least one, for example ('a',)")
    columns = []
    for variable in variables:
        terms = variable.split("+")
        parts = []
        for group in prompts:
            missing = [term for term in terms if term not in group.variables]
            if missing:
                raise MechnumError(
                    f"the prompts have no number {missing[0]!r}: "
                    f"use {', '.join(group.variables) or 'prompts of a task, these have none'}"
                )
            parts.append(sum(group.variables[term].double() for term in terms))
        columns.append(torch.cat(parts).numpy())
    return np.column_stack(columns)
