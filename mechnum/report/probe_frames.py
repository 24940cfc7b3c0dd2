"""Tables of what probes read, and what these say in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import reading, words

WAVES = ("param-sin", "fourier", "digits", "sin")
"""Probes with waves of the number; the others have none."""
NAMES = {
    "linear": "linear regression",
    "log": "regression of the logarithm",
    "binary": "binary",
    "sin": "fixed sines",
    "param-sin": "param-sin",
    "fourier": "Fourier regression",
    "digits": "circles of digits",
    "logit": "logit lens",
    "tuned": "tuned lens",
}
_PARTS = ("accuracy", "low", "high", "absolute_error", "chance")
NEARLY = 0.9
"""From this share of another's accuracy on, a control reads nearly as much."""


def curve(dataset: xr.Dataset, **chosen: str | int) -> pd.DataFrame:
    """One curve over layers: `layer`, `accuracy`, `low`, `high` and others that are there."""
    own = dataset.sel(chosen)
    names = [name for name in _PARTS if name in own and own[name].dims == ("layer",)]
    frame = pd.DataFrame({name: own[name].values for name in names})
    frame.insert(0, "layer", own["layer"].values)
    return frame


def probe_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each reader and layer: `reader`, `layer`, `accuracy`, its interval and `chance`.

    Readers are the probes, and the lenses where they were measured.
    """
    probes, lenses = results["probes"].to_dataset(), reading.group(results, "lenses")
    parts = [
        curve(probes, probe=name).assign(reader=NAMES[str(name)]) for name in probes["probe"].values
    ]
    if lenses is not None:
        chance = float(lenses["chance"])
        parts += [
            curve(lenses, lens=name).assign(reader=NAMES[str(name)], chance=chance)
            for name in lenses["lens"].values
        ]
    frame = pd.concat(parts, ignore_index=True)
    return frame[["reader", *frame.columns.drop("reader")]]


def best_row(frame: pd.DataFrame) -> pd.Series:
    """The row of the largest accuracy; the first layer of several."""
    return frame.loc[frame["accuracy"].idxmax()]


def share(row: pd.Series) -> str:
    """An accuracy in percent with its interval."""
    if np.isnan(row.get("low", np.nan)):
        return words.percent(float(row["accuracy"]))
    ends = f"{words.percent(float(row['low']))} to {words.percent(float(row['high']))}"
    return f"{words.percent(float(row['accuracy']))} ({ends})"


def map_frames(dataset: xr.Dataset, rows: str, columns: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracies of two dimensions as a grid, and what is said of each cell."""
    grid = dataset["accuracy"].transpose(rows, columns).to_pandas()
    low, high = (dataset[name].transpose(rows, columns).to_pandas() for name in ("low", "high"))
    hover = grid.astype(object)
    for row in grid.index:
        for column in grid.columns:
            ends = (grid.loc[row, column], low.loc[row, column], high.loc[row, column])
            hover.loc[row, column] = (
                f"<b>{_said(row)} → {_said(column)}</b><br>{words.interval(*ends, sign=False)}"
            )
    return grid.rename(index=_said, columns=_said), hover


def _said(label: str | int) -> str:
    return "emb" if label == -1 else str(label)


def strongest_sines(sines: xr.Dataset, layer: int, most: int = 40) -> pd.DataFrame:
    """The fitted sines of a layer with the largest amplitudes, those near 0 left out."""
    frame = sines.sel(layer=layer).to_dataframe().reset_index(drop=True)
    frame = frame[["period", "frequency", "amplitude", "phase"]]
    return frame[frame["amplitude"] > 0.01 * frame["amplitude"].max()].head(most)


def points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found in numbers of texts, in a sentence each."""
    probes = results["probes"].to_dataset()
    found = [("What is read", _read(probes, float(results.attrs["published"])))]
    lenses = reading.group(results, "lenses")
    if lenses is not None:
        # In the embedding the token itself stands.
        inner = lenses.sel(layer=lenses["layer"] >= 0)
        rows = [(NAMES[name], best_row(curve(inner, lens=name))) for name in ("logit", "tuned")]
        said = words.listed([f"the {name} {share(row)}" for name, row in rows])
        found.append(
            (
                "Lenses",
                f"at their best layers behind the embedding {said} of the numbers' own tokens, "
                f"among {int(lenses['n_tokens'])} (the commonest has "
                f"{words.percent(float(lenses['chance']))}).",
            )
        )
    if (meaning := what_it_means(results)) is not None:
        found.append(("What it means", meaning))
    if (texts := _texts(results)) is not None:
        found.append(("New texts", texts))
    found += _transfers(results)
    return found + reading.left_out(results)


def what_it_means(results: xr.DataTree) -> str | None:
    """How far the accuracy of the Fourier regression goes beyond what the spelling tells."""
    controls, spelling = (reading.group(results, name) for name in ("controls", "spelling"))
    if controls is None or spelling is None:
        return None
    best = {
        str(name): float(controls["accuracy"].sel(control=name, probe="fourier").max())
        for name in controls["control"].values
    }
    tokens = float(spelling["accuracy"].sel(probe="fourier").isel(reader=0))
    own, bare = best["states"], best.get("untrained net")
    said = f"the Fourier regression reads {words.percent(own)} from states"
    if own < 5 * float(controls["chance"].sel(probe="fourier").max()):
        return f"{said}, which is little more than chance: there is nothing to explain."
    said += f", {words.percent(tokens)} from nothing but the last four tokens"
    if bare is not None:
        said += f", and {words.percent(bare)} from a net of the same shape without training"
    if tokens >= NEARLY * own:
        verdict = (
            "The spelling alone gives as much, or nearly: the net has brought the digits together "
            "in one state, and this accuracy does not show that it computed more."
        )
    elif bare is not None and bare >= NEARLY * own:
        verdict = (
            "Digits that attention brings together, mixed at random, are enough: this accuracy "
            "does not show that training made a code of numbers."
        )
    else:
        verdict = "The rest is what the trained net made of its tokens."
    digits = float(spelling["accuracy"].sel(probe="digits").isel(reader=0))
    return (
        f"{said}. {verdict} Circles of digits read {words.percent(digits)} from the tokens alone. "
        "That a number can be read does not show that the model uses it."
    )


def _texts(results: xr.DataTree) -> str | None:
    """What is lost after the last layer where the template is new as well."""
    controls = reading.group(results, "controls")
    if controls is None or "templates of training" not in controls["control"]:
        return None
    last = controls["accuracy"].sel(probe="fourier").isel(layer=-1)
    new, seen = (float(last.sel(control=name)) for name in ("states", "templates of training"))
    return (
        f"{words.after_layer(int(last['layer']))} the Fourier regression reads "
        f"{words.percent(seen)} of new numbers in templates that it has seen, and "
        f"{words.percent(new)} in new ones."
    )


def _read(probes: xr.Dataset, published: float) -> str:
    """The best layer of each probe."""
    texts = []
    for name in probes["probe"].values:
        row = best_row(curve(probes, probe=name))
        where = words.after_layer(int(row["layer"]))
        texts.append(f"{NAMES[str(name)]} {share(row)} {where}")
    text = f"at the best of {probes.sizes['layer']} layers: {words.listed(texts)}."
    if "param-sin" in probes["probe"].values:
        best = float(probes["accuracy"].sel(probe="param-sin").max())
        text += (
            f" Param-sin reads {words.percent(best)} at best, where the paper reports more than "
            f"{words.percent(published)} of other models."
        )
    return text


def _transfers(results: xr.DataTree) -> list[tuple[str, str]]:
    found = []
    other = reading.group(results, "transfer/other_layers")
    if other is not None:
        frame = curve(other.rename(tested_on="layer"))
        row = best_row(frame)
        found.append(
            (
                "Other layers",
                f"a probe of all other layers reads {share(row)} "
                f"{words.after_layer(int(row['layer']))}, the best of {len(frame)}, and "
                f"{words.percent(float(frame['accuracy'].iloc[-1]))} in the last.",
            )
        )
    kinds = reading.group(results, "transfer/kinds")
    if kinds is not None:
        cell = kinds["accuracy"]
        there, back = (
            float(cell.sel(trained_on=one, tested_on=two))
            for one, two in (("natural", "arithmetic"), ("arithmetic", "natural"))
        )
        found.append(
            (
                "Kinds of text",
                f"a probe of natural texts reads {words.percent(there)} in arithmetic, and one of "
                f"arithmetic {words.percent(back)} in natural texts "
                f"{words.after_layer(int(results.attrs['layer']))}.",
            )
        )
    return found


def layers_of(dataset: xr.Dataset) -> Sequence[int]:
    """The layers of a table, in order."""
    return [int(layer) for layer in dataset["layer"].values]
