"""The report on how alike models hold numbers, and its summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.similarity import (
    chance_section,
    frequencies_section,
    map_section,
    models_section,
    published_values,
    transfer_section,
)
from mechnum.report.similarity_frames import (
    DIGITS,
    pair_frame,
    present_nulls,
    transfer_frame,
)
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


def similarity_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.similarity.measure_similarity` gives."""
    sections = [
        Section("What was found", [Text(points=_points(results)), Text(_NULLS_SAY)]),
        chance_section(results),
        map_section(results),
        frequencies_section(results),
        transfer_section(results),
        models_section(results),
        published_values(results),
        provenance_section(results),
    ]
    return Page(
        title=f"How alike numbers are in {words.listed(list(_models(results)))}",
        lead=_lead(results),
        sections=[section for section in sections if section is not None],
    )


def similarity_summary(results: xr.DataTree) -> Group:
    """The pairs with their similarities, and what was found, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    table = bare_table()
    for name in ("a", "b"):
        table.add_column(name)
    shown = {"cosine pearson": "cosine", "dot pearson": "dot", "cka": "CKA", "spectra": "freq."}
    for name in (*shown.values(), "chance of cosine", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    frames = {measure: pair_frame(results, measure) for measure in shown}
    cosine = frames["cosine pearson"]
    highest, p = _chance(cosine, list(present_nulls(results)))
    for row in range(len(cosine)):
        table.add_row(
            str(cosine["a"].iloc[row]),
            str(cosine["b"].iloc[row]),
            *(words.number(float(frame["value"].iloc[row])) for frame in frames.values()),
            f"up to {words.number(float(highest.iloc[row]), 2)}",
            words.number(float(p.iloc[row]), 2),
        )
    table.caption = (
        f"Numbers {results.attrs['numbers']}. RSA by cosine and dot product (Pearson), CKA, and "
        f"the match of the {results.attrs['top']} strongest frequencies.\nChance: the largest "
        "97.5 % quantile of the nulls; p: the largest of them."
    )
    points = [Line(f"{name}: {text}") for name, text in _points(results)]
    return Group(Line(" · ".join(_models(results)), style="bold"), *points, table)


_NULLS_SAY = (
    "Shuffled and Gaussian rows say what two tables share that have nothing in common but their "
    "spread; being above them is little: any two codes that change smoothly with the number are. "
    "Random words say what the two models share for any token. The table of digits alone, in the "
    "section on places, says what spelling gives.",
    "A pair that is alike may have got its numbers from the same place: nets of one start, of one "
    "teacher or of the same texts. Similarity is no evidence that a model uses what is alike.",
)


def _models(results: xr.DataTree) -> dict[str, str]:
    return dict(reading.structured(results.attrs["models"]))


def _lead(results: xr.DataTree) -> str:
    frame = pair_frame(results, "cosine pearson")
    largest = frame.loc[frame["value"].idxmax()]
    ends = f"{words.number(float(frame['value'].min()))} to {words.number(largest['value'])}"
    return (
        f"Numbers {results.attrs['numbers']}: the cosines of all pairs of numbers correlate by "
        f"{ends if len(frame) > 1 else words.number(largest['value'])}"
        + (f", most between {largest['a']} and {largest['b']}." if len(frame) > 1 else ".")
    )


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, in a sentence or two each."""
    nulls = list(present_nulls(results))
    points = [("Numbers", f"{_read(results)}.")]
    for name, measure in (("Cosine", "cosine pearson"), ("Dot product", "dot pearson"),
                          ("Frequencies", "spectra")):  # fmt: skip
        points.append((name, _beside_chance(pair_frame(results, measure), nulls)))
    spelt = results["map"]["value"].sel(measure="cosine pearson", other=DIGITS).to_series()
    place = str(spelt.drop(DIGITS).idxmax())
    points.append(
        (
            "Spelling",
            f"the digits alone, without any model, correlate with {place} by "
            f"{words.number(float(spelt[place]))} (cosine, Pearson), the largest of all places.",
        )
    )
    points += _transfers(results)
    return points + reading.left_out(results)


def _read(results: xr.DataTree) -> str:
    """Which numbers, and in which text each model reads them."""
    texts: dict[str, list[str]] = {}
    for name, how in reading.structured(results.attrs["read"]).items():
        template, _, digits = how.rpartition(", ")
        token = "as one token" if digits == "single" else "at their last token"
        place = "alone" if template == "'{n}'" else f"in {template}"
        texts.setdefault(f"{token}, {place}", []).append(name)
    said = "; ".join(f"{words.listed(names)} {how}" for how, names in texts.items())
    return f"{results.attrs['numbers']}, the longest run that all can read. Read by {said}"


def _beside_chance(frame: pd.DataFrame, nulls: list[str]) -> str:
    known = frame.dropna(subset=["value"])
    if known.empty:
        return "not measured: there are too few frequencies."
    highest, p = _chance(known, nulls)
    above = int((p <= words.SURE).sum())
    ends = [words.number(float(end)) for end in (known["value"].min(), known["value"].max())]
    said = " to ".join(dict.fromkeys(ends))
    return (
        f"{said}; the nulls reach {words.number(float(highest.max()))} (97.5 % quantile). "
        f"{above} of {len(known)} are above all nulls (p ≤ {words.SURE:g} against each)."
    )


def _chance(frame: pd.DataFrame, nulls: list[str]) -> tuple[pd.Series, pd.Series]:
    """The largest 97.5 % quantile and the largest p of all nulls, by pair."""
    return tuple(frame[[f"{null}_{end}" for null in nulls]].max(axis=1) for end in ("high", "p"))  # type: ignore[return-value]


def _transfers(results: xr.DataTree) -> list[tuple[str, str]]:
    points = []
    for name in ("number", "answer"):
        found = reading.group(results, f"transfer/{name}")
        if found is None:
            continue
        frame = transfer_frame(found)
        model = frame["kind"] == "model"
        across = frame[model & (frame["trained_model"] != frame["tested_model"])]
        most = frame.groupby("kind")["accuracy"].max()
        points.append(
            (
                f"Probes of the {name} on other models",
                f"{words.percent(float(across['accuracy'].median()))} right in the median of "
                f"places, {words.percent(float(across['accuracy'].max()))} at best; at most in "
                f"untrained nets {words.percent(float(most.get('untrained', 0)))}, Gaussian rows "
                f"{words.percent(float(most.get('gaussian', 0)))}, alignments to shuffled numbers "
                f"{words.percent(float(across['shuffled'].max()))}.",
            )
        )
    return points
