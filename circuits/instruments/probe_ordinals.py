"""Weekdays, months and number words: is their order read where a word was never shown?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from mechnum.circuits.instruments.probe import measured_parts, spread_layers
from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    NumberProbe,
    ParamSinProbe,
    collect_states,
    layer_tables,
    leave_one_value_out,
)
from mechnum.progress import track
from mechnum.tasks.contexts import ORDINALS, ordinal_prompts

PERMUTATIONS = 19
"""Of the words, for p; 19 make 0.05 the least."""


def measure_ordinals(
    model: Model,
    kinds: Sequence[str] = tuple(ORDINALS),
    layers: Sequence[int] | None = None,
    permutations: int = PERMUTATIONS,
    folder: Path | None = None,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Each word is read by probes that saw all others (Štefánik et al. 2026, ordinals).

    Nothing is chosen on the word that is left out: periods and steps are fixed beforehand, and the
    strength of a ridge comes from the other words.

    Args:
        kinds: names in `mechnum.tasks.contexts.ORDINALS`.
        layers, folder: as in `mechnum.circuits.instruments.probe.measure_numbers`.
        permutations: how often the words are dealt anew; not for param-sin, which takes longest.
        said: further attributes, such as the command.

    Returns:
        For each kind a group of its name, `/ordinals/weekdays`, over (probe, layer): `n_right` and
        `p`; over (probe, layer, word) `read`, the place that most rows are read as (−1 for none),
        and `right`. `/published`: the paper's figures beside these. The attribute `left_out` says
        which kinds the model's tokenizer does not allow.

    Raises:
        MechnumError: no kind can be read, and why the first one cannot.
    """
    chosen = spread_layers(model) if layers is None else list(layers)
    attrs: dict[str, str | int | float] = {}

    def measured(kind: str) -> xr.Dataset:
        prompts = ordinal_prompts(model, kind)
        file = None if folder is None else folder / f"{_group(kind)}.safetensors"
        collected = collect_states(model, prompts, chosen, file, replace=True)
        for name, value in collected.attrs.items():
            attrs.setdefault(str(name), value)
        return _read(kind, collected, permutations, seed).assign_attrs(collected.attrs)

    parts = {f"ordinals/{_group(kind)}": (lambda kind=kind: measured(kind)) for kind in kinds}
    found, left_out = measured_parts(parts)
    if not found:
        raise MechnumError(next(iter(left_out.values()), "there are no words: name weekdays"))
    attrs |= {"permutations": permutations, "seed": seed, **(said or {})}
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    results = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **found})
    return with_published(results, "universal_numbers", "ordinals", model)


def ordinal_probes(n_words: int, seed: int) -> dict[str, NumberProbe]:
    """A line, circles of all and of half the words, and param-sin with the paper's penalties."""
    return {
        "linear": LinearNumberProbe(seed=seed),
        "fourier": FourierRegressionProbe((n_words, n_words / 2), seed=seed),
        "param-sin": ParamSinProbe(
            H=64, steps=300, batch_size=None, learning_rate=1e-2, decay=False,
            l1=1e-3, l2=1e-2, validation_share=0.0, seed=seed,
        ),
    }  # fmt: skip


def _group(kind: str) -> str:
    return kind.replace(" ", "_")


def _read(kind: str, collected: xr.Dataset, permutations: int, seed: int) -> xr.Dataset:
    words = ORDINALS[kind]
    probes, tables = ordinal_probes(len(words), seed), layer_tables(collected)
    cells = []
    for name, layer in track([(name, layer) for name in probes for layer in tables], kind):
        times = 0 if name == "param-sin" else permutations
        own = leave_one_value_out(probes[name], tables[layer], permutations=times, seed=seed)
        p = own.get("p", np.nan)
        cells.append(own[["read", "right", "n_right"]].assign(p=p))
    rows = [cells[first : first + len(tables)] for first in range(0, len(cells), len(tables))]
    layers = xr.DataArray(list(tables), dims="layer", name="layer")
    found = xr.concat(
        [xr.concat(row, layers, combine_attrs="drop") for row in rows],
        xr.DataArray(list(probes), dims="probe", name="probe"),
        combine_attrs="drop",
    )
    return found.rename(value="word").assign_coords(word=list(words))
