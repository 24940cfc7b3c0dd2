"""Beliefs as points in a plane with colours, and tables of how well they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import reading, theme, words

POINTS = 2500
"""Prefixes that one panel draws."""
LAST, ALL = "last", "all"
PLACES = {LAST: "the last residual", ALL: "all residuals joined"}
"""The layers that pages speak of, in words."""
NO_WAY = 1e-4
"""Nats by which predictions have to differ for the question whether they follow."""
STEPS = 5
"""Snapshots that the training sequence draws."""
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


class Plane(NamedTuple):
    """A linear map of beliefs to a plane.

    Attributes:
        matrix: [coordinate, 2]. offset: added to it.
        corners: [corner, 2] of the simplex, empty where the plane cuts through more of them.
        names: of the corners.
        axes: titles of x and y, empty in a simplex.
    """

    matrix: np.ndarray
    offset: np.ndarray
    corners: np.ndarray
    names: tuple[str, ...]
    axes: tuple[str, str]

    def points(self, beliefs: np.ndarray) -> np.ndarray:
        """Where beliefs [row, coordinate] are drawn."""
        return beliefs @ self.matrix + self.offset


def plane_of(
    beliefs: np.ndarray, weights: np.ndarray, names: Sequence[str], drawn: Sequence[str] | None
) -> Plane:
    """Three states as a triangle, two of those that were chosen as axes, else where beliefs vary.

    Args:
        beliefs: true ones [row, coordinate], of which `weights` are averaged over.
        drawn: names of the coordinates that were chosen; None leaves the choice open.
    """
    size = len(names)
    chosen = [list(names).index(name) for name in drawn] if drawn else list(range(size))
    if len(chosen) == 3:
        # A state outside the three pulls towards none of them: to the middle of the triangle.
        matrix = np.tile(_CORNERS.mean(axis=0), (size, 1))
        matrix[chosen] = _CORNERS
        named = tuple(str(names[own]) for own in chosen)
        return Plane(matrix, np.zeros(2), _CORNERS, named, ("", ""))
    if len(chosen) <= 2:
        matrix = np.zeros((size, 2))
        matrix[chosen, range(len(chosen))] = 1.0
        titles = [f"probability of {names[own]}" for own in chosen] + [""]
        return Plane(matrix, np.zeros(2), np.empty((0, 2)), (), (titles[0], titles[1]))
    mean = weights @ beliefs / weights.sum()
    spread = (beliefs - mean).T * weights @ (beliefs - mean)
    _, directions = np.linalg.eigh(spread)
    matrix = directions[:, -2:][:, ::-1]
    # Which way a direction points is chance; its largest entry is made positive.
    matrix = matrix * np.sign(matrix[np.abs(matrix).argmax(axis=0), [0, 1]])
    titles = ("first principal component", "second principal component")
    return Plane(matrix, -mean @ matrix, np.empty((0, 2)), (), titles)


def colours_of(beliefs: np.ndarray) -> list[str]:
    """A mixture of the states' colours for each belief."""
    palette = np.array(
        [[int(own[i : i + 2], 16) for i in (1, 3, 5)] for own in theme.SERIES], dtype=float
    )
    own = palette[np.arange(beliefs.shape[1]) % len(palette)]
    mixed = np.clip(beliefs, 0, 1) @ own / np.clip(beliefs, 0, 1).sum(axis=1, keepdims=True)
    return [f"rgb({r},{g},{b})" for r, g, b in np.round(mixed).astype(int)]


def some(n: int, most: int = POINTS) -> np.ndarray:
    """`most` of `n` rows at equal distances, or all."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def drawn_states(results: xr.DataTree) -> list[str] | None:
    """The states that were chosen to be drawn."""
    found = reading.structured(results.attrs.get("drawn"))
    return [str(name) for name in found] if isinstance(found, list) else None


def best_norm(results: xr.DataTree) -> str:
    """The reading of residuals that the page speaks of: after the norm, where there is one."""
    return str(results["geometry"].to_dataset()["norm"].values[-1])


def layer_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each layer and norm: MSE with interval, R², and the verdict."""
    geometry = results["geometry"].to_dataset()
    rows = []
    for layer in geometry["layer"].values:
        for norm in geometry["norm"].values:
            at = geometry.sel(layer=layer, norm=norm)
            own = at.sel(predictor="states")
            rows.append(
                {
                    "layer": str(layer),
                    "norm": str(norm),
                    **{name: float(own[name]) for name in ("mse", "mse_low", "mse_high", "r2")},
                    "untrained": float(at["mse"].sel(predictor="untrained net")),
                    "verdict": str(at["verdict"].values),
                    "reason": str(at["reason"].values),
                }
            )
    return pd.DataFrame(rows)


def control_frame(results: xr.DataTree, layer: str) -> pd.DataFrame:
    """One row for each predictor at a layer, after the norm where there is one."""
    at = results["geometry"].to_dataset().sel(layer=layer, norm=best_norm(results))
    rows: list[dict[str, Any]] = []
    for predictor in at["predictor"].values:
        own = at.sel(predictor=predictor)
        row = {"predictor": str(predictor)}
        row |= {name: float(own[name]) for name in ("mse", "mse_low", "mse_high", "r2", "spread")}
        against = predictor in at["control"].values
        for name in ("gain", "gain_low", "gain_high"):
            row[name] = float(at[name].sel(control=predictor)) if against else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def position_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each position: how many prefixes end there, and the error of their beliefs, also
    where the mean belief of all prefixes is said of each."""
    at = results["geometry"].to_dataset().sel(norm=best_norm(results))
    position, weight = at["position"].values, at["weight"].values
    belief = at["belief"].values
    guesses = {place: at["predicted"].sel(layer=layer).values for layer, place in PLACES.items()}
    guesses["the mean belief"] = np.broadcast_to(weight @ belief / weight.sum(), belief.shape)
    rows = []
    for own in np.unique(position):
        here = position == own
        row: dict[str, Any] = {"position": int(own), "prefixes": int(here.sum())}
        for name, guess in guesses.items():
            gap = guess[here] - belief[here]
            row[name] = np.average((gap**2).mean(axis=1), weights=weight[here])
        rows.append(row)
    return pd.DataFrame(rows)


def positions_words(results: xr.DataTree) -> str:
    """The positions that beliefs are read at, and why these, where results say so."""
    found = results["geometry"].to_dataset()
    known = np.unique(found["position"].values).tolist()
    told = words.listed([str(own) for own in known])
    if len(known) > 2 and np.ptp(known) == len(known) - 1:
        told = f"{known[0]} to {known[-1]}"
    why = results.attrs.get("why_positions")
    said = f"position{'s' if len(known) > 1 else ''} {told} of {found.attrs['length']}"
    return f"{said}, counted from 0" + (f"; {why}" if why else "")


def joined_words(results: xr.DataTree) -> str:
    """Whether all layers joined hold more than the last residual does."""
    at = results["geometry"].to_dataset().sel(norm=best_norm(results))
    mse = {layer: float(at["mse"].sel(layer=layer, predictor="states")) for layer in PLACES}
    own = at.sel(layer=LAST)
    gain, low, high = (float(own[f"joined_gain{end}"]) for end in ("", "_low", "_high"))
    if low > 0 and mse[ALL] > 0:
        said = f"{words.number(mse[LAST] / mse[ALL])} times"
    else:
        said = "smaller than" if high < 0 else "not clearly larger than"
    difference = words.interval(gain, low, high)
    return f"the error from {PLACES[LAST]} is {said} that from {PLACES[ALL]}, {difference} more"


def also_read(results: xr.DataTree) -> dict[str, xr.DataTree]:
    """Geometries at other positions, each as results of their own, by what is read there."""
    if "also" not in results.children:
        return {}
    return {
        str(name): xr.DataTree.from_dict({"/geometry": node.to_dataset()})
        for name, node in results["also"].children.items()
    }


def patched_place(patched: xr.Dataset, layer: int) -> str:
    """Where a patch was made, in words."""
    last = int(patched["layer"].values[-1])
    return "last residual" if layer == last else f"input of block {layer}"


def followed_frame(patched: xr.Dataset) -> pd.DataFrame:
    """How far predictions follow each patch, for the next token, for later ones, and for all.

    A share of the way from "none" to "target run", of the KL summed over pairs and tokens: single
    tokens may have next to no way to go, and shares of it would be noise. Tokens on which the two
    histories make no difference have no row.
    """
    kl = patched["kl"].mean("pair")
    parts = {"the next": slice(0, 1), "later": slice(1, None), "all": slice(None)}
    rows = []
    for layer in patched["layer"].values:
        for tokens, steps in parts.items():
            total = kl.sel(layer=layer).isel(step=steps).sum("step").to_series()
            way = total["none"] - total["target run"]
            if way > NO_WAY:
                share = (total["none"] - total.drop(["none", "target run"])) / way
                rows.append({"layer": int(layer), "tokens": tokens, **share.to_dict()})
    moved = [str(name) for name in kl["patch"].values if name not in ("none", "target run")]
    return pd.DataFrame(rows, columns=pd.Index(["layer", "tokens", *moved]))


def depth_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each depth of the mixed-state tree."""
    tree, entropy = (results[name].to_dataset() for name in ("mixed_states", "entropy"))
    depth = tree["depth"].values
    first = tree["first_depth"].values
    depths = np.arange(int(tree.attrs["max_depth"]) + 1)
    return pd.DataFrame(
        {
            "depth": depths,
            "beliefs": [int((depth == own).sum()) for own in depths],
            "new": [int((first == own).sum()) for own in depths],
            "strings": [int(tree["strings"].values[depth == own].sum()) for own in depths],
            "entropy": entropy["entropy"].sel(seen=depths).values,
        }
    )


def shown_steps(results: xr.DataTree) -> list[int]:
    """Steps of the training sequence: more at the beginning, where most happens."""
    steps = results["snapshots"].to_dataset()["step"].values
    places = np.unique(np.round((len(steps) - 1) * np.linspace(0, 1, STEPS) ** 2).astype(int))
    return [int(step) for step in steps[places]]


def hover_texts(found: xr.Dataset, rows: np.ndarray, names: list[str]) -> list[str]:
    """What is said of a prefix: how long it is, and its true belief."""
    return [
        f"{int(position) + 1} tokens<br>true: "
        + ", ".join(f"{name} {words.number(float(p))}" for name, p in zip(names, own, strict=True))
        for position, own in zip(
            found["position"].values[rows], found["belief"].values[rows], strict=True
        )
    ]
