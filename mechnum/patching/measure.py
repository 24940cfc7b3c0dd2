"""A measurement over all pairs: batch by batch, at one position, at all, or at each in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import Decoder
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.patching.batches import Batch
from mechnum.patching.local import Place
from mechnum.patching.metrics import Metric, MetricName
from mechnum.patching.sources import Source, source_batches
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs


@dataclass(frozen=True)
class Scorer:
    """The metric of a batch's pairs, beside that of their base run.

    Attributes:
        last: the base run's last residual at the last position.
    """

    decoder: Decoder
    metric: Metric
    last: Float[Tensor, "pair d_model"]
    base_score: Float[Tensor, " pair"]

    @classmethod
    def of(cls, place: Place, batch: Batch, name: MetricName) -> Scorer:
        """For the pairs of a batch."""
        metric = Metric(place.decoder, name, batch.answers, batch.corrupt_answers)
        last = place.base.last[:, -1]
        return cls(place.decoder, metric, last, metric(place.decoder.final_norm(last)))

    def score(self, last: Float[Tensor, "*row pair d_model"]) -> Float[Tensor, "*row pair"]:
        """The metric of last residuals."""
        return self.metric(self.decoder.final_norm(last))


# Values of every cell of a table, by variable, for patches at one place.
MeasureAt = Callable[[Place, Scorer], Mapping[str, Float[Tensor, "cell pair"]]]
# The same for each kept position in turn, where all of them take one computation.
MeasureEach = Callable[[Place, Scorer], Iterable[Mapping[str, Float[Tensor, "cell pair"]]]]


def measure(
    model: Model,
    pairs: Pairs,
    given: Source,
    at: MeasureAt,
    dims: Mapping[str, Sequence[int] | Sequence[str]],
    what: str,
    each: MeasureEach | None = None,
) -> xr.Dataset:
    """Run `at` on every batch of pairs, and put its tables together.

    Args:
        dims: name → labels of the dimensions that a table's cells are, the first slowest.
        each: for a sweep, in place of `at` at one position after the other.

    Returns:
        The variables of `at` over (pair, *dims), for a sweep over (pair, position, *dims) with
        positions counted from the end, those that a pair does not have NaN, and those before its
        first difference 0; `clean_metric` and `corrupt_metric` over pair.
    """
    parts = source_batches(model, pairs, given)
    intervention = given.intervention
    sweep = intervention.position == "each"
    length = max(batch.length for batch in parts)
    shape = tuple(len(labels) for labels in dims.values())
    n_cells = int(np.prod(shape))
    values: dict[str, np.ndarray] = {}
    scores = {side: np.full(len(pairs), np.nan) for side in ("clean", "corrupt")}
    sides = ("corrupt", "clean") if intervention.direction == "denoise" else ("clean", "corrupt")

    def put(index: np.ndarray, position: int, found: Mapping[str, Tensor]) -> None:
        for name, cells in found.items():
            if name not in values:
                values[name] = np.full((len(pairs), length if sweep else 1, n_cells), np.nan)
            values[name][index, position] = cells.double().cpu().T.numpy()

    for batch in track(parts, what):
        index = batch.index.numpy()
        with exact(model.device):
            place, other = given.place(batch)
            scorer = Scorer.of(place, batch, intervention.metric)
            scores[sides[0]][index] = scorer.base_score.double().cpu().numpy()
            scores[sides[1]][index] = scorer.score(other.last[:, -1]).double().cpu().numpy()
            if not sweep:
                put(index, 0, at(place, scorer))
                continue
            if each is None:
                places = map(place.at, range(batch.position, batch.length))
                swept = (at(here, scorer) for here in places)
            else:
                swept = each(place, scorer)
            for position, found in enumerate(swept, batch.position - batch.length):
                put(index, position, found)
            first = batch.position - batch.length
            for cells in values.values():
                # Nothing differs at the positions before; what does not exist, exists nowhere.
                before = np.where(np.isnan(cells[index, first]), np.nan, 0.0)
                cells[index, -batch.length : first] = before[:, None]
    lead = ("pair", "position") if sweep else ("pair",)
    lead_shape = (len(pairs), length) if sweep else (len(pairs),)
    tables = {
        name: ((*lead, *dims), cells.reshape(*lead_shape, *shape)) for name, cells in values.items()
    }
    coords: dict[str, Any] = {"pair": np.arange(len(pairs)), **dims}
    if sweep:
        coords["position"] = np.arange(-length, 0)
    metrics = {f"{side}_metric": ("pair", score) for side, score in scores.items()}
    return xr.Dataset({**tables, **metrics}, coords)
