"""Numbers in text: what probes and lenses read at each layer, and the controls that say why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import xarray as xr

from mechnum.circuits.running.comparison import published_figure, with_published
from mechnum.errors import MechnumError
from mechnum.inputs import seed_sequence
from mechnum.models import Model
from mechnum.models.fresh import untrained as untrained_twin
from mechnum.probes import (
    BinaryProbe,
    CircularDigitProbe,
    FourierRegressionProbe,
    LinearNumberProbe,
    LogNumberProbe,
    NumberProbe,
    ParamSinProbe,
    ResidueProbe,
    SinProbe,
    StateTable,
    collect_around,
    context_tables,
    layer_tables,
    leave_one_out_transfer,
    lens_accuracy,
    permuted,
    probe_curves,
    probe_transfer,
    token_table,
)
from mechnum.probes.tables import Label
from mechnum.tasks.contexts import ContextPrompts
from mechnum.tasks.examples import bos_policy

MODULI = (2, 3, 5, 7, 9, 10)
"""Residues that are read; those of 3, 7 and 9 are not in the last digit."""
LAYERS = 8
"""Layers that are read where nothing else is said, at equal distances."""
STEPS = 600
"""Of the probes that are trained by gradients, at most."""
_CIRCUIT = "universal_numbers"
ARITHMETIC, NATURAL = "arithmetic", "natural"
_SIMPLE = ("fourier", "digits")  # Fitted in closed form, so that each control can have both.
_FILES = {0: "numbers", -1: "one_token_earlier"}

_PROBES: Mapping[str, Callable[[int, int], NumberProbe]] = {
    "linear": lambda _, seed: LinearNumberProbe(seed=seed),
    "log": lambda _, seed: LogNumberProbe(seed=seed),
    "binary": lambda steps, seed: BinaryProbe(steps=steps, seed=seed),
    "sin": lambda steps, seed: SinProbe(steps=steps, seed=seed),
    "param-sin": lambda steps, seed: ParamSinProbe(H=512, steps=steps, seed=seed),
    "fourier": lambda _, seed: FourierRegressionProbe(seed=seed),
    "digits": lambda _, seed: CircularDigitProbe(seed=seed),
}
PROBES = tuple(_PROBES)
"""Names of the probes."""


def measure_numbers(
    model: Model,
    prompts: Sequence[ContextPrompts],
    layers: Sequence[int] | None = None,
    probes: Sequence[str] = PROBES,
    steps: int = STEPS,
    folder: Path | None = None,
    untrained: Model | None = None,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Everything that is read of numbers in texts (Štefánik et al. 2026, arXiv 2510.26285).

    A fifth of the numbers and a quarter of the templates are held out of all training. What the
    model or the texts do not allow is left out, and the attribute `left_out` says why.

    Args:
        prompts: of `mechnum.tasks.contexts.context_prompts`.
        layers: −1 is the embedding; by default 8 at equal distances, the first and the last among
            them.
        probes: names among `PROBES`.
        steps: of probes that are trained by gradients.
        folder: where the collected states are kept and found again, in place of others there.
        untrained: for the control; by default `mechnum.models.fresh.untrained(model)`.
        seed: of everything that is drawn.
        said: further attributes, such as the command.

    Returns:
        `/probes`: `probe_curves` of all probes; `/lenses`: `lens_accuracy`; `/controls`: the
        Fourier and the digit probe over `control` ("states", "templates of training", "one token
        earlier", "untrained net", "permuted numbers"); `/spelling`: the same probes on tokens
        alone; `/residues`: accuracy over (modulus, layer); `/sines`: the fitted sines of param-sin
        over (layer, sine);
        `/transfer/layers`, `/transfer/contexts` and `/transfer/kinds` (arithmetic and natural):
        `probe_transfer`; `/transfer/other_layers` and `/transfer/other_contexts`:
        `leave_one_out_transfer`, all of the Fourier probe. The attribute `layer` is where it
        explains most of the training numbers, which contexts are compared at. `/published`: the
        paper's figures beside these.

    Raises:
        MechnumError: unknown probes or layers, and texts with too few numbers or templates.
    """
    chosen = spread_layers(model) if layers is None else list(layers)
    asked = number_probes(probes, steps, seed)
    # A text may begin with a number, which then has no token before it.
    offsets = (0, -1) if all(bool((group.places > 0).all()) for group in prompts) else (0,)
    files = {offset: _file(folder, _FILES[offset]) for offset in offsets}
    collected = collect_around(model, prompts, files, chosen, replace=True)
    tables = layer_tables(collected[0])
    kept: dict[tuple[str, Label], NumberProbe] = {}

    def keep(name: str, label: Label, probe: NumberProbe) -> None:
        kept[name, label] = probe

    def untrained_tables() -> dict[Label, StateTable]:
        twin = untrained_twin(model, seed) if untrained is None else untrained
        file = _file(folder, "untrained")
        return layer_tables(collect_around(twin, prompts, {0: file}, chosen, replace=True)[0])

    curves = probe_curves(asked, tables, seed=seed, fitted=keep)
    best = _best_layer(kept, tables, seed)
    contexts = context_tables(collected[0], best)
    controls, left_out = _controls(
        curves,
        {
            "states": lambda: tables,
            "templates of training": lambda: {
                label: replace(table, templates=None) for label, table in tables.items()
            },
            "one token earlier": lambda: layer_tables(_earlier(collected)),
            "untrained net": untrained_tables,
            "permuted numbers": lambda: {
                label: permuted(table, seed) for label, table in tables.items()
            },
        },
        seed,
    )
    parts: dict[str, Callable[[], xr.Dataset]] = {
        "lenses": lambda: lens_accuracy(model, collected[0], seed=seed),
        "spelling": lambda: probe_curves(
            number_probes(_SIMPLE, steps, seed),
            {"tokens": token_table(prompts)},
            dim="reader",
            seed=seed,
        ),
        "residues": lambda: _residues(tables, seed),
        **_transfers(tables, contexts, seed),
    }
    if "param-sin" in asked:
        parts["sines"] = lambda: _sines(kept)
    found, others = measured_parts(parts)
    attrs = {
        **collected[0].attrs,
        "n_layers": model.spec.n_layers,
        "bos": bos_policy(model, prompts[0]),
        "contexts": json.dumps(list(contexts)),
        "n_numbers": len(np.unique(collected[0]["value"])),
        "n_states": collected[0].sizes["row"],
        "layer": best,
        "seed": seed,
        "published": published_figure(_CIRCUIT, "param-sin in texts, every model").lower,
        **(said or {}),
    }
    if left_out | others:
        attrs["left_out"] = json.dumps(left_out | others)
    results = xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs=attrs), "/probes": curves, "/controls": controls, **found}
    )
    return with_published(results, _CIRCUIT, "contexts", model)


def number_probes(names: Sequence[str], steps: int, seed: int) -> dict[str, NumberProbe]:
    """Probes of these names, unfitted.

    Raises:
        MechnumError: no names, or an unknown one.
    """
    unknown = [name for name in names if name not in _PROBES]
    if not names or unknown:
        what = f"no probe {unknown[0]!r}" if unknown else "no probe"
        raise MechnumError(f"there is {what}: choose of {', '.join(PROBES)}")
    return {name: _PROBES[name](steps, seed) for name in names}


def spread_layers(model: Model, most: int = LAYERS) -> list[int]:
    """Layers at equal distances, from the embedding, −1, to the last."""
    last = model.spec.n_layers - 1
    return np.unique(np.linspace(-1, last, most).round().astype(int)).tolist()


def measured_parts(
    parts: Mapping[str, Callable[[], xr.Dataset]],
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """What could be measured, by path in the results, and why the rest could not."""
    found, left_out = {}, {}
    for name, measure in parts.items():
        try:
            found[f"/{name}"] = measure()
        except MechnumError as reason:
            left_out[name] = str(reason)
    return found, left_out


def several(tables: Mapping[Label, StateTable]) -> Mapping[Label, StateTable]:
    """The tables, if there are two or more.

    Raises:
        MechnumError: there is one.
    """
    if len(tables) < 2:
        raise MechnumError("there is one context alone: give two or more to compare")
    return tables


def kinds_of_text(contexts: Mapping[Label, StateTable], seed: int = 0) -> dict[Label, StateTable]:
    """Arithmetic, and as many rows of all other contexts together.

    Raises:
        MechnumError: there is no arithmetic, or nothing else.
    """
    others = [table for name, table in contexts.items() if name != ARITHMETIC]
    if ARITHMETIC not in contexts or not others:
        raise MechnumError("arithmetic is compared with other texts: give both")
    arithmetic, natural = contexts[ARITHMETIC], others[0].joined(*others[1:])
    generator = np.random.default_rng(seed_sequence(seed))
    rows = np.sort(generator.permutation(len(natural))[: len(arithmetic)])
    return {ARITHMETIC: arithmetic, NATURAL: natural.select(rows)}


def _file(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / f"{name}.safetensors"


def _best_layer(
    kept: Mapping[tuple[str, Label], NumberProbe], tables: Mapping[Label, StateTable], seed: int
) -> int:
    """Where the Fourier regression explains most of training numbers that its folds leave out."""
    if ("fourier", next(iter(tables))) not in kept:
        fitted = dict(kept)
        probe_curves(
            number_probes(("fourier",), 1, seed),
            tables,
            seed=seed,
            fitted=lambda name, label, probe: fitted.update({(name, label): probe}),
        )
        kept = fitted
    explained = {
        int(label): float(np.nanmean(probe.r2_))
        for (_, label), probe in kept.items()
        if isinstance(probe, FourierRegressionProbe)
    }
    return max(explained, key=lambda layer: explained[layer])


def _earlier(collected: Mapping[int, xr.Dataset]) -> xr.Dataset:
    if -1 not in collected:
        raise MechnumError("some texts begin with a number: give texts with a word before it")
    return collected[-1]


def _controls(
    curves: xr.Dataset,
    makers: Mapping[str, Callable[[], Mapping[Label, StateTable]]],
    seed: int,
) -> tuple[xr.Dataset, dict[str, str]]:
    """The Fourier and the digit probe on each control's tables, and why some could not be made.

    Args:
        curves: what was measured of the states already, which is not measured again.
    """
    parts = ["accuracy", "low", "high", "absolute_error", "chance"]
    probes = number_probes(_SIMPLE, STEPS, seed)
    named: dict[str, xr.Dataset] = {}
    left_out: dict[str, str] = {}
    for name, make in makers.items():
        known = curves if name == "states" else curves.isel(probe=slice(0))
        todo = {own: probe for own, probe in probes.items() if own not in known["probe"]}
        try:
            cells = [known[parts].sel(probe=[own for own in probes if own not in todo])]
            if todo:
                cells.append(probe_curves(todo, make(), seed=seed)[parts])
        except MechnumError as reason:
            left_out[name] = str(reason)
            continue
        named[name] = xr.concat(cells, "probe", combine_attrs="drop").sel(probe=list(probes))
    joined = xr.concat(
        list(named.values()),
        xr.DataArray(list(named), dims="control", name="control"),
        combine_attrs="drop",
    )
    return joined.assign_attrs(curves.attrs), left_out


def _residues(tables: Mapping[Label, StateTable], seed: int) -> xr.Dataset:
    asked = {str(modulus): ResidueProbe(modulus, seed=seed) for modulus in MODULI}
    found = probe_curves(asked, tables, seed=seed).rename(probe="modulus")
    return found.assign_coords(modulus=list(MODULI))


def _transfers(
    tables: Mapping[Label, StateTable], contexts: Mapping[Label, StateTable], seed: int
) -> dict[str, Callable[[], xr.Dataset]]:
    probe = FourierRegressionProbe(seed=seed)
    return {
        "transfer/layers": lambda: probe_transfer(probe, tables, seed=seed),
        "transfer/other_layers": lambda: leave_one_out_transfer(probe, tables, seed=seed),
        "transfer/contexts": lambda: probe_transfer(probe, several(contexts), seed=seed),
        "transfer/other_contexts": lambda: leave_one_out_transfer(
            probe, several(contexts), seed=seed
        ),
        "transfer/kinds": lambda: probe_transfer(probe, kinds_of_text(contexts, seed), seed=seed),
    }


def _sines(kept: Mapping[tuple[str, Label], NumberProbe]) -> xr.Dataset:
    """`ParamSinProbe.frequencies` of each layer, the largest amplitude first."""
    found: dict[Label, xr.Dataset] = {
        label: probe.frequencies().drop_vars("sine")
        for (_, label), probe in kept.items()
        if isinstance(probe, ParamSinProbe)
    }
    layers = xr.DataArray(list(found), dims="layer", name="layer")
    return cast(xr.Dataset, xr.concat(list(found.values()), layers, combine_attrs="drop"))
