"""`mechnum verify`: is the canonical decoder the model, and which hooks do what they say?"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from mechnum.cli.loading import load_model
from mechnum.cli.options import Device, Dtype, ModelName, Quiet
from mechnum.cli.progress import bars
from mechnum.cli.tables import print_table

if TYPE_CHECKING:
    from mechnum.models import HookWrite


def verify(
    model: ModelName, device: Device = None, dtype: Dtype = None, quiet: Quiet = False
) -> None:
    """Compare the decoder with the model, hook by hook."""
    with bars(quiet):
        loaded = load_model(model, device, dtype)
        from mechnum.models import try_hooks

        with warnings.catch_warnings():
            # TransformerLens warns of some discarded writes; the table shows them all.
            warnings.simplefilter("ignore", UserWarning)
            writes = try_hooks(loaded.decoder, loaded.tl)
    found = loaded.verification
    typer.echo(
        f"{loaded.name}: {loaded.spec.family}, {loaded.spec.n_layers} layers, "
        f"{loaded.spec.n_heads} heads, {loaded.spec.d_model} dimensions\n"
        f"largest logit difference  {found.logit_difference:.2e}  (allowed {found.tolerance:.2e})\n"
        f"additivity residual       {found.additivity:.2e}  (relative to the last residual)\n"
    )
    print_table(("hook point", "layers", "a write", "largest change of a logit"), _rows(writes))


def _rows(writes: Iterable[HookWrite]) -> list[tuple[str, str, str, str]]:
    """One row for the layers in which a hook point behaves the same."""
    layers: dict[tuple[str, str], list[int]] = {}
    changes: dict[tuple[str, str], list[float]] = {}
    for write in writes:
        block = re.match(r"blocks\.(\d+)\.(.+)", write.name)
        key = (block[2] if block else write.name, write.outcome)
        changes.setdefault(key, []).append(write.logit_change)
        layers.setdefault(key, [])
        if block:
            layers[key].append(int(block[1]))
    return [
        (name, _spans(layers[name, outcome]), outcome, _span(changes[name, outcome]))
        for name, outcome in layers
    ]


def _spans(layers: list[int]) -> str:
    """`0, 2-5`."""
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and layer == runs[-1][-1] + 1:
            runs[-1][1:] = [layer]
        else:
            runs.append([layer])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _span(changes: list[float]) -> str:
    """`0.12 to 3.4`; empty where nothing was written."""
    low, high = f"{min(changes):.3g}", f"{max(changes):.3g}"
    if low == "nan":
        return ""
    return low if low == high else f"{low} to {high}"
