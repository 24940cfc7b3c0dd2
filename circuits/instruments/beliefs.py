"""The geometry of prediction: beliefs about a hidden process, and a net that was trained on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from mechnum.beliefs import belief_geometry, belief_patching, belief_progress
from mechnum.circuits.instruments.belief_questions import question
from mechnum.errors import MechnumError
from mechnum.models import Model, load
from mechnum.patching.provenance import versions
from mechnum.tasks.processes import (
    Process,
    entropy_rate,
    mixed_state_tree,
    myopic_entropy,
)
from mechnum.tasks.processes.tree import levels
from mechnum.training import History

NODES = 10_000
"""Nodes of a mixed-state tree, about."""
DEPTH = 12
"""Of a mixed-state tree, at most."""


def measure_process(
    process: Process,
    states: Sequence[str] | None = None,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """What there is to believe about a process, and how well it can be predicted.

    Args:
        states: the two or three hidden states whose probabilities reports draw; by default all
            three, or the directions in which the beliefs vary most.
        said: further attributes, such as the command.

    Returns:
        `/mixed_states`: `mixed_state_tree`, as deep as it has about 10,000 nodes, 12 at most;
        `/entropy`: `myopic_entropy` with `rate`, `rate_low` and `rate_high`, NaN where they take
        too many tokens. The attribute `left_out` says what could not be measured, and why.

    Raises:
        MechnumError: on unknown states.
    """
    depth = _depth(process)
    entropy, left_out = myopic_entropy(process, depth + 1), {}
    try:
        rate = entropy_rate(process)
        found = (rate.value, rate.low, rate.high)
    except MechnumError as reason:
        found, left_out["entropy rate"] = (np.nan, np.nan, np.nan), str(reason)
    ends = dict(zip(("rate", "rate_low", "rate_high"), found, strict=True))
    attrs = {
        "process": process.name,
        "hidden_states": process.n_states,
        "tokens": process.n_tokens,
        "versions": json.dumps(versions()),
        **_drawn(process.states, states),
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "/mixed_states": mixed_state_tree(process, depth),
            "/entropy": entropy.assign({name: ((), value) for name, value in ends.items()}),
        }
    )


def measure_beliefs(
    model: Model,
    process: Process,
    history: History | None = None,
    length: int | None = None,
    strings: int = 5000,
    positions: Sequence[int] | None = None,
    readout: Float[np.ndarray, "state coordinate"] | None = None,
    untrained: Model | None = None,
    states: Sequence[str] | None = None,
    position: int | None = None,
    n_pairs: int = 200,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Everything about a net's beliefs (Shai et al. 2024, section 4), and the process itself.

    Args:
        history: of the net's training, see `mechnum.training.history_of`.
        length, strings, untrained: as in `mechnum.beliefs.belief_geometry`.
        positions, readout: where beliefs are read, and what of them; without these, what
            `mechnum.circuits.instruments.belief_questions.question` says.
        states: as in `measure_process`, of the readout's coordinates where there is one.
        position, n_pairs: of the causal test, as in `mechnum.beliefs.belief_patching`.
        said: further attributes, such as the command.

    Returns:
        That of `measure_process`, and `/geometry`: `belief_geometry`, and again, as
        `/also/operands`, at the operands of column addition; `/snapshots`: `belief_progress`, with
        the run's `heldout_loss` and `bound`; `/patching`: `belief_patching`. What cannot be
        measured is left out, and the attribute `left_out` says why.

    Raises:
        MechnumError: where the model cannot read the process' strings, and as `belief_geometry`.
    """
    history = History() if history is None else history
    asked = question(process, length or model.spec.n_ctx, positions, readout)
    drawn = _drawn(asked.names, states)
    shared: dict[str, Any] = {"length": length, "readout": asked.readout, "seed": seed}

    def geometry_at(places: Sequence[int] | None) -> xr.Dataset:
        found = belief_geometry(
            model, process, strings=strings, positions=places, untrained=untrained, **shared
        )
        return found.assign_coords(coordinate=asked.names)

    found, left_out = {"/geometry": geometry_at(asked.positions)}, {}
    found |= {f"/also/{name}": geometry_at(places) for name, places in asked.also.items()}
    parts: dict[str, Callable[[], xr.Dataset]] = {
        "patching": lambda: belief_patching(
            model, process, position, length, n=n_pairs, strings=min(strings, 2000), seed=seed
        )
    }
    if history.checkpoints:
        parts["snapshots"] = lambda: beliefs_along_training(
            history, process, positions=asked.positions, **shared
        ).assign_coords(coordinate=asked.names)
    elif history.measures is not None and length is positions is readout is None:
        found["/snapshots"] = history.measures
    for name, measured in parts.items():
        try:
            found[f"/{name}"] = measured()
        except MechnumError as reason:
            left_out[name] = str(reason)
    alone, of_geometry = measure_process(process), found["/geometry"].attrs
    left_out |= json.loads(alone.attrs.get("left_out", "{}"))
    attrs = {
        **{key: value for key, value in alone.attrs.items() if key not in ("left_out", "drawn")},
        **{key: value for key, value in of_geometry.items() if key not in ("seed", "estimand")},
        "why_positions": asked.why,
        **_training(model, process),
        **drawn,
        "seed": seed,
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            **{f"/{name}": node.to_dataset() for name, node in alone.children.items()},
            **found,
        }
    )


def beliefs_along_training(history: History, process: Process, **settings: Any) -> xr.Dataset:
    """`belief_progress` of a run's checkpoints, and the losses that its log has at their steps.

    Args:
        settings: as in `belief_progress`.
    """
    nets = ((step, load(str(folder))) for step, folder in history.checkpoints.items())
    progress = belief_progress(nets, process, **settings)
    if history.scores is None:
        return progress
    logged = history.scores[["heldout_loss", "bound"]]
    return progress.merge(logged.reindex(step=progress["step"]))


def _depth(process: Process) -> int:
    """The largest depth, up to `DEPTH`, whose tree has about `NODES` nodes."""
    grown = 0

    def fits(level: Any) -> bool:
        nonlocal grown
        grown += len(level.beliefs)
        return grown <= NODES

    return max(sum(1 for _ in takewhile(fits, levels(process, DEPTH))) - 1, 1)


def _training(model: Model, process: Process) -> dict[str, str]:
    """What the net was trained on, where that is something else."""
    task = model.default_task
    return {} if task is None or task == process.name else {"trained_on": task}


def _drawn(known: Sequence[str], states: Sequence[str] | None) -> dict[str, str]:
    if states is None:
        return {}
    unknown = [name for name in states if name not in known]
    if unknown or len(set(states)) != len(states) or not 2 <= len(states) <= 3:
        raise MechnumError(
            f"cannot draw {', '.join(states)}: choose two or three of {', '.join(known)}"
        )
    return {"drawn": json.dumps(list(states))}
