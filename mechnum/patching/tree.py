"""A measurement with its statistics and an example of its prompts: what reports and files hold."""

from __future__ import annotations

import json

import xarray as xr

from mechnum.models.model import Model
from mechnum.patching.statistics import summarise
from mechnum.tasks.examples import bos_policy, example_pair, token_texts
from mechnum.tasks.pairs import Pairs

# Variables that say how the two prompts of a pair score, and not what a patch does.
_METRICS = ("clean_metric", "corrupt_metric")


def results(
    model: Model, pairs: Pairs, measured: xr.Dataset, seed: int = 0, **said: str | int | float
) -> xr.DataTree:
    """What `mechnum.report` draws and writes of a measurement.

    Args:
        measured: what `mechnum.effects` or `mechnum.path_effects` gave for these pairs.
        seed: of the intervals and p-values.
        said: further attributes, such as the command.

    Returns:
        `/nodes` or `/edges`: the measurement, each pair's values included;
        `/statistics/<variable>`: what `summarise` gives for each of its variables;
        `/prompts`: the tokens of one pair. The root's attributes are those of the measurement.
    """
    group = "edges" if "sender" in measured.dims else "nodes"
    clean, _ = example_pair(pairs)
    attrs = {
        **measured.attrs,
        "family": model.spec.family,
        "bos": bos_policy(model, clean),
        "dropped": json.dumps(dict(pairs.dropped)),
        **said,
    }
    parts = {
        "/": xr.Dataset(attrs=attrs),
        f"/{group}": measured.drop_attrs(deep=False),
        "/prompts": example_prompts(model, pairs),
    }
    for name, values in measured.data_vars.items():
        if name not in _METRICS:
            parts[f"/statistics/{name}"] = summarise(values, seed=seed)
    return xr.DataTree.from_dict(parts)


def example_prompts(model: Model, pairs: Pairs) -> xr.Dataset:
    """The tokens of one pair, and where its operands stand."""
    clean, corrupt = example_pair(pairs)
    ids = {name: side.tokens[0].tolist() for name, side in (("", clean), ("corrupt_", corrupt))}
    return xr.Dataset(
        {f"{name}tokens": ("position", tokens) for name, tokens in ids.items()},
        coords={
            f"{name}token": ("position", token_texts(model, tokens)) for name, tokens in ids.items()
        },
        attrs={
            "positions": json.dumps({name: int(at[0]) for name, at in clean.positions.items()}),
            "from_the_end": json.dumps(_shared_positions(pairs)),
            "text": clean.texts[0],
            "corrupt_text": corrupt.texts[0],
        },
    )


def _shared_positions(pairs: Pairs) -> dict[str, int]:
    """Named positions, counted from the end, where they are the same in all pairs."""
    found: dict[str, set[int]] = {}
    for group in pairs.groups:
        length = group.clean.tokens.shape[1]
        for name, positions in group.clean.positions.items():
            found.setdefault(name, set()).update((positions - length).tolist())
    return {name: places.pop() for name, places in found.items() if len(places) == 1}
