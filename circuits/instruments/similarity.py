"""Do models, and the places of one model, hold numbers alike? With what chance makes of it.

Štefánik et al. 2026 (arXiv 2510.26285).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.circuits.instruments.transfer import answer_transfer, number_transfer
from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.models import Model, TokenTable, bundled
from mechnum.models.load import card_of
from mechnum.patching.provenance import versions
from mechnum.probes import (
    number_similarity,
    place_rows,
    reading_of,
    shared_numbers,
    shared_words,
    similarity_map,
    word_rows,
)
from mechnum.probes.number_places import EMBEDDING, Reading, layer_place
from mechnum.probes.regression import digits, n_digits
from mechnum.probes.similarity import COMPONENTS, DRAWS, TOP

NUMBERS = range(200)
DIGITS = "digits alone"
"""The table of nothing but the digits of each number."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """A model, and the place whose rows are tested; None for the one that suits."""

    model: Model | TokenTable
    place: str | None = None


@dataclass(frozen=True, eq=False)
class _Subject:
    """Everything of one model that is compared: its rows at each place."""

    model: Model | TokenTable
    reading: Reading
    rows: Mapping[str, xr.DataArray]

    def label(self, place: str) -> str:
        return f"{self.model.name}, {place}"

    def suitable(self) -> str:
        """The embedding where it tells numbers apart, else the state after half of the layers."""
        if self.reading.digits == "single" or isinstance(self.model, TokenTable):
            return EMBEDDING
        return layer_place(max(self.model.spec.n_layers // 2 - 1, 0))

    def check(self, place: str) -> str:
        if place not in self.rows:
            known = ", ".join(self.rows)
            raise MechnumError(f"{self.model.name} has no place {place!r}: use one of {known}")
        return place


def measure_similarity(
    chosen: Sequence[Chosen],
    numbers: Iterable[int] = NUMBERS,
    template: str | None = None,
    top: int = TOP,
    components: int = COMPONENTS,
    draws: int = DRAWS,
    transfer: bool = True,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """How alike the number representations of models are, each pair against three nulls.

    Of one model, its embedding (or the place that is named) is compared with every other place of
    it. Of several, each pair at one place of each: the one that is named, else the embedding where
    numbers are one token, else the state after half of the layers, at the last token of a number in
    a neutral text. Compared are the longest run of numbers that all can read.

    Args:
        chosen: models with their places; the same model may be there at several.
        numbers: to choose from.
        template: as in `mechnum.probes.reading_of`.
        top, components, draws: as in `mechnum.probes.number_similarity`.
        transfer: whether probes of one model are read on the others.
        said: further attributes, such as the command.

    Returns:
        `/pairs`: `number_similarity` over `pair`, with the coordinates `a` and `b`; `/map`:
        `similarity_map` of every place of every model and of the digits alone; of several models
        `/transfer/number`, and `/transfer/answer` where all were trained to add (see
        `mechnum.circuits.instruments.transfer`); `/published`. The attribute `left_out` says what
        could not be measured, and why.

    Raises:
        MechnumError: on no models, the same model and place twice, a place that a model does not
            have, and models that share too few numbers.
    """
    if not chosen:
        raise MechnumError("there are no models: name one or more")
    models = list({one.model.name: one.model for one in chosen}.values())
    readings = {model.name: reading_of(model, numbers, template) for model in models}
    shared = shared_numbers(readings)
    subjects = {
        model.name: _Subject(
            model, readings[model.name], place_rows(model, shared, readings[model.name])
        )
        for model in models
    }
    tested = _tested(chosen, subjects)
    left_out: dict[str, str] = {}
    if top >= (n_frequencies := len(shared) // 2):
        left_out["match of frequencies"] = (
            f"{len(shared)} numbers have {n_frequencies} frequencies, and all of them match in any "
            "two models: choose fewer"
        )
    words = _words(tested, draws_from=max(1000, 2 * len(shared)), seed=seed, left_out=left_out)
    shape: dict[str, Any] = {"top": top, "components": components}
    if len(tested) == 1:
        pairs = _within(*tested[0], words, draws=draws, seed=seed, **shape)
    else:
        pairs = _between(tested, words, draws=draws, seed=seed, **shape)
    tables = {own.label(place): own.rows[place] for own in subjects.values() for place in own.rows}
    everything = similarity_map({**tables, DIGITS: _digit_rows(shared)}, **shape)
    owners = [own.model.name for own in subjects.values() for _ in own.rows]
    found = {
        "/pairs": pairs,
        "/map": everything.assign_coords(model=("place", [*owners, DIGITS])),
    }
    parts: dict[str, Callable[[], xr.Dataset]] = {}
    if transfer and len(models) > 1:
        rows = {own.model.name: own.rows for own in subjects.values()}
        parts["number"] = lambda: number_transfer(models, rows, readings, seed)
        adders = [m for m in models if isinstance(m, Model) and m.default_task == "addition"]
        if len(adders) == len(models):
            parts["answer"] = lambda: answer_transfer(adders, seed)
    for name, measured in parts.items():
        try:
            found[f"/transfer/{name}"] = measured()
        except MechnumError as reason:
            left_out[f"transfer of the {name}"] = str(reason)
    attrs = {
        "models": json.dumps(
            {model.name: f"{_family(model)}, {model.fingerprint}" for model in models}
        ),
        "tested": json.dumps([own.label(place) for own, place in tested]),
        "numbers": f"{shared[0]} to {shared[-1]}",
        "n_numbers": len(shared),
        "read": json.dumps(
            {name: f"{own.template!r}, {own.digits}" for name, own in readings.items()}
        ),
        "top": top,
        "components": components,
        "draws": draws,
        "seed": seed,
        "versions": json.dumps(versions()),
        **(said or {}),
    }
    known = bundled()
    if about := {m.name: _about(known[m.name]) for m in models if m.name in known}:
        attrs["about"] = json.dumps(about)
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    results = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **found})
    return with_published(results, "universal_numbers", "similarity", models[0])


def _tested(
    chosen: Sequence[Chosen], subjects: Mapping[str, _Subject]
) -> list[tuple[_Subject, str]]:
    """Each model with its place; of one model alone, the place that the others are beside."""
    found: list[tuple[_Subject, str]] = []
    for one in chosen:
        own = subjects[one.model.name]
        place = own.suitable() if one.place is None else own.check(one.place)
        if len(chosen) == 1 and one.place is None:
            place = EMBEDDING
        if (own, place) in found:
            raise MechnumError(
                f"{own.label(place)} is there twice: name another place of it, as in "
                f"{own.model.name}@{list(own.rows)[-1].removeprefix('layer ')}"
            )
        found.append((own, place))
    if len(found) == 1 and len(found[0][0].rows) == 1:
        raise MechnumError(
            f"{found[0][0].model.name} has one table of numbers, its embedding: name another model "
            "to compare it with"
        )
    return found


_Words = Callable[[_Subject, Sequence[str]], Mapping[str, Float64[np.ndarray, "token d"]] | None]


def _words(
    tested: Sequence[tuple[_Subject, str]], draws_from: int, seed: int, left_out: dict[str, str]
) -> _Words:
    """Rows of words that all models have; none where there are too few of them."""
    models = list({own.model.name: own.model for own, _ in tested}.values())
    n_numbers = next(iter(tested[0][0].rows.values())).sizes["number"]
    try:
        ids = dict(
            zip(
                [model.name for model in models],
                shared_words(models, draws_from, seed),
                strict=True,
            )
        )
        if (n := len(ids[models[0].name])) < n_numbers:
            raise MechnumError(f"{n} words are tokens of all these models, fewer than the numbers")
    except MechnumError as reason:
        left_out["random tokens"] = str(reason)
        return lambda _own, _places: None
    return lambda own, places: word_rows(own.model, ids[own.model.name], own.reading, places)


def _within(own: _Subject, reference: str, words: _Words, **options: Any) -> xr.Dataset:
    """Every other place of a model beside one."""
    places = [place for place in own.rows if place != reference]
    tokens = words(own, [reference, *places])
    rows = xr.concat(
        [own.rows[place].drop_vars("layer", errors="ignore") for place in places],
        xr.DataArray(places, dims="place", name="place"),
        coords="minimal",
        compat="override",
        combine_attrs="drop",
    )
    found = number_similarity(
        rows,
        own.rows[reference],
        None if tokens is None else np.stack([tokens[place] for place in places]),
        None if tokens is None else tokens[reference],
        **options,
    )
    labels = [own.label(place) for place in places]
    return (
        found.rename(place="pair")
        .drop_vars("pair")
        .assign_coords(a=("pair", [own.label(reference)] * len(places)), b=("pair", labels))
    )


def _between(tested: Sequence[tuple[_Subject, str]], words: _Words, **options: Any) -> xr.Dataset:
    """Each pair of models, at the place of each."""
    tokens = [words(own, [place]) for own, place in tested]
    cells, names = [], []
    for first, second in combinations(range(len(tested)), 2):
        (one, place), (other, there) = tested[first], tested[second]
        ours, theirs = tokens[first], tokens[second]
        cells.append(
            number_similarity(
                one.rows[place],
                other.rows[there],
                None if ours is None else ours[place],
                None if theirs is None else theirs[there],
                **options,
            )
        )
        names.append((one.label(place), other.label(there)))
    joined = xr.concat(cells, "pair", combine_attrs="drop_conflicts")
    a, b = zip(*names, strict=True)
    return joined.assign_coords(a=("pair", list(a)), b=("pair", list(b)))


def _digit_rows(numbers: range) -> xr.DataArray:
    """Which digit stands at each place of a number, and whether one does: 0 or 1."""
    values = np.array(numbers)
    width = n_digits(int(np.abs(values).max()), 10)
    written = digits(np.abs(values), 10, width)
    missing = np.abs(values)[:, None] < 10 ** np.arange(width) * (np.arange(width) > 0)
    code = np.where(missing, 10, written)
    columns = (code[:, :, None] == np.arange(11)).reshape(len(values), -1)
    signs = (values < 0)[:, None]
    return xr.DataArray(
        np.hstack([columns, signs]).astype(np.float64),
        dims=("number", "dimension"),
        coords={"number": values},
    )


def _about(folder: Path) -> str:
    """What the card says: models may be alike since they started alike."""
    card = card_of(folder)
    return f"{card['about']} Not for: {card['not_for']}"


def _family(model: Model | TokenTable) -> str:
    return model.family if isinstance(model, TokenTable) else model.spec.family
