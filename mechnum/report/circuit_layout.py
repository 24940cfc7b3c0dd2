"""Where the nodes and edges of a circuit's picture go: layers upwards, heads side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from mechnum.errors import MechnumError

_POINTS = 24  # Of each curve.
# Columns by kind, from left to right, with their labels.
_COLUMNS = {
    "head": "head {}",
    "kv": "group {}",
    "attn": "attention",
    "mlp": "MLP",
    "neuron": "neurons",
}
# How far from its layer's heads a kind stands: MLPs may read these, and these read keys and values.
_ABOVE = {"mlp": 0.45, "neuron": 0.45, "kv": -0.25}
# Where along the lower edge of a head its inputs lie.
_PORTS = {"q": -1, "k": 0, "v": 1}


@dataclass(frozen=True)
class CircuitLayout:
    """Places in the picture.

    Attributes:
        places: name → (x, y), with y growing from the embedding to the logits.
        columns: x → label of what stands in a column.
        layers: y → label of the layers that have nodes, and of "embed" and "logits".
    """

    places: Mapping[str, tuple[float, float]]
    columns: Mapping[float, str]
    layers: Mapping[float, str]

    def curve(
        self, sender: str, reader: str, receiver: str
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
        """A curve that leaves upwards and arrives from below, beside the nodes that it passes.

        `receiver` is the input of `reader` that it ends at: q, k and v of a head lie side by side.
        """
        (x0, y0), (x1, y1) = self.places[sender], self.places[reader]
        # Columns are narrow where there are many, and nodes are as large as ever.
        x1 += _PORTS.get(receiver.split(" ")[0], 0) * min(0.05 + 0.005 * len(self.columns), 0.13)
        rise = y1 - y0
        # Those that stay in a column over more than a layer pass between it and the next.
        bow = 0.6 if rise > 1.2 and abs(x1 - x0) < 0.3 else 0.0
        t = np.linspace(0, 1, _POINTS)
        weights = np.stack(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3), axis=1)
        x = weights @ np.array([x0, x0 + bow, x1 + bow, x1])
        y = weights @ np.array([y0, y0 + 0.5 * rise, y1 - 0.5 * rise, y1])
        return x, y


def layout(nodes: pd.DataFrame) -> CircuitLayout:
    """The places of a circuit's nodes.

    `nodes` has the columns `name`, `kind`, `layer` (NaN for embed and logits) and `index` (NaN
    where the kind has none). Layers and heads without a node take no room.

    Raises:
        MechnumError: on kinds that the picture has no place for.
    """
    unknown = set(nodes["kind"]) - {*_COLUMNS, "embed", "logits"}
    if unknown:
        raise MechnumError(
            f"a circuit's picture has no place for {', '.join(sorted(unknown))}: "
            f"give {', '.join(_COLUMNS)}, embed and logits"
        )
    inner = nodes[nodes["layer"].notna()]
    keys = _column_keys(inner)
    columns = {key: float(rank) for rank, key in enumerate(sorted(set(keys)))}
    heights = {int(layer): rank + 1.0 for rank, layer in enumerate(np.unique(inner["layer"]))}
    top = len(heights) + 1.0
    middle = max(len(columns) - 1, 0) / 2
    ends = {"embed": (middle, 0.0), "logits": (middle, top)}
    places = {str(name): ends[str(name)] for name in nodes["name"][nodes["layer"].isna()]}
    for key, row in zip(keys, inner.to_dict("records"), strict=True):
        above = _ABOVE.get(str(row["kind"]), 0.0)
        places[str(row["name"])] = (columns[key], heights[int(row["layer"])] + above)
    kinds = list(_COLUMNS.items())
    labels = {
        x: "" if kinds[kind][0] == "neuron" and part else kinds[kind][1].format(part)
        for (kind, part), x in columns.items()
    }
    layers = {0.0: "embed", **{y: f"layer {layer}" for layer, y in heights.items()}, top: "logits"}
    return CircuitLayout(places, labels, layers)


def _column_keys(inner: pd.DataFrame) -> list[tuple[int, int]]:
    """Kind and part of each node; neurons of a layer stand side by side in their order."""
    order = list(_COLUMNS)
    rank = inner.groupby(["kind", "layer"])["index"].rank(method="first") - 1
    parts = inner["index"].where(inner["kind"] != "neuron", rank).fillna(0).astype(int)
    return [(order.index(kind), part) for kind, part in zip(inner["kind"], parts, strict=True)]
