"""The page of the helix at one position, and its summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from mechnum.report import figures, findings, reading, words
from mechnum.report.blocks import Caption, Figure, Table, Text
from mechnum.report.frames import score_frame
from mechnum.report.intervals import INTERVAL_WORDS, ONE_FIT
from mechnum.report.page import Page, Section
from mechnum.report.sections.controls import (
    ablation_section,
    continuity_section,
    linear_section,
    search_frame,
    search_section,
    structure_section,
    variables_section,
)
from mechnum.report.sections.helix import (
    IN_PLANES,
    NOT_DRAWN,
    OFF_THE_CURVE,
    fit_words,
    helix_section,
    score_null,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


def helix_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.helix.measure_helix` gave."""
    attrs = results.attrs
    sites = findings.site_frames(results)
    sections = [
        _found(results, sites),
        tokens_section(results),
        helix_section(results, sites),
        _sizes_section(results),
        _space_section(results),
        ablation_section(results),
        variables_section(results),
        search_section(results),
        continuity_section(results),
        structure_section(results),
        linear_section(results),
        published_section(results),
        provenance_section(results),
    ]
    task = str(attrs.get("task", "its task")).replace("_", " ")
    return Page(
        title=f"The helix of {attrs.get('features', 'a number')} at {attrs.get('position', 'a')} "
        f"in {attrs.get('model', 'the model')}, {task}",
        lead=findings.accuracy_sentence(results),
        sections=[section for section in sections if section is not None],
    )


def best_layers(results: xr.DataTree) -> pd.DataFrame:
    """For each method the layer where its causal score is largest.

    Columns: method, parameters, layer, `score` with the ends of its interval, `r2` there, `n`
    pairs.
    """
    site, frame = next(iter(findings.site_frames(results).items()))
    sizes = reading.helix_sites(results)[site]["parameters"].to_series()
    rows = []
    for method in figures.METHODS:
        own = frame[frame["method"] == method].reset_index(drop=True)
        if len(own):
            best = own.loc[own["score"].idxmax()]
            rows.append({"method": method, "parameters": int(sizes[method]), **best.to_dict()})
    order = ["method", "parameters", "layer", "score", "score_low", "score_high", "r2", "n"]
    return pd.DataFrame(rows)[order]


def helix_summary(results: xr.DataTree) -> Group:
    """What `mechnum helix` prints, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    attrs = reading.attributes(results)
    table = bare_table()
    table.add_column(f"{attrs.get('features')} at {attrs.get('position')}")
    for name in ("parameters", "layer", "causal score", "R²"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in best_layers(results).to_dict("records"):
        table.add_row(
            figures.method_name(row["method"]),
            str(row["parameters"]),
            "embedding" if row["layer"] == -1 else str(int(row["layer"])),
            words.interval(row["score"], row["score_low"], row["score_high"]),
            words.number(row["r2"]),
        )
    table.caption = (
        f"The layer of the largest causal score: mean change of {words.metric(attrs)} over "
        f"{attrs.get('n_pairs')} pairs [95 % interval]"
    )
    parts = [Line(f"{attrs.get('model')} · {attrs.get('task')}", style="bold")]
    if sentence := findings.accuracy_sentence(results):
        parts.append(Line(sentence))
    lines = [f"{name}: {text}" for name, text in _points(results)]
    return Group(*parts, table, *map(Line, lines))


def _found(results: xr.DataTree, sites: dict[str, pd.DataFrame]) -> Section:
    points = findings.helix_points(sites) + _points(results)
    attrs = reading.attributes(results)
    note = (
        f"Scores are changes of {words.metric(attrs)} in the corrupt run, means over pairs with "
        "95 % intervals; 0 is no effect. y is the right answer to a pair's clean prompt, "
        "y\N{PRIME} that to its corrupt prompt."
    )
    return Section("What was found", [Text(points=points), Text([note])])


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What the tests of the helix say, in a sentence each."""
    points = []
    table, search = search_frame(results), reading.group(results, "search")
    if table is not None and search is not None:
        best, nested = table.iloc[0], search.attrs["nested"] == "true"
        score = words.interval(best["score"], best["low"], best["high"])
        text = f"{best['periods']} score best ({score} on other numbers, mean over layers); the "
        text += f"best subsets of each size are {'nested' if nested else 'not nested'}."
        points.append(("Periods", text))
    if (ablated := reading.group(results, "ablation")) is not None:
        points += _ablation_point(score_frame(ablated, reading.seed(results)))
    if (loop := reading.group(results, "continuity")) is not None:
        agreement = words.number(float(loop.attrs["rank_agreement"]))
        p = words.q_value(float(loop.attrs["p"]))
        text = f"held-out numbers lie on the circle with a rank agreement of {agreement} (p {p})."
        points.append(("Continuity", text))
    return points + reading.left_out(results)


def _ablation_point(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """What the clean run loses without the helix, where the whole state matters most."""
    if not {"whole", "helix", "random_components"} <= set(frame["method"]):
        return []
    scores = frame.set_index(["method", "layer"])[["score", "score_low", "score_high"]]
    layer = int(scores.loc["whole"]["score"].idxmin())
    whole, helix, random = (
        words.interval(*scores.loc[(name, layer)].tolist())
        for name in ("whole", "helix", "random_components")
    )
    text = (
        f"{words.after_layer(layer)} the clean run changes by {helix} without the helix, by "
        f"{whole} without the whole state, and by {random} without a random subspace."
    )
    return [("Ablation", text)]


def _sizes_section(results: xr.DataTree) -> Section | None:
    sites = reading.helix_sites(results)
    if not sites:
        return None
    attrs = reading.attributes(results, next(iter(sites.values())))
    frame = best_layers(results)
    n, null = words.count_range(frame["n"], "pairs"), score_null(frame)
    frame = frame.drop(columns="n").rename(columns={"r2": "R²"})
    frame["method"] = [figures.method_name(method) for method in frame["method"]]
    return Section(
        "Size and best layer",
        [
            Table(
                title="Each fit at the layer of its largest score",
                frame=frame,
                caption=Caption(
                    text="Parameters are the independent directions that a fit writes, beside the "
                    "constant; layer \N{MINUS SIGN}1 is the embedding. Columns of the helix that "
                    f"are dropped: {attrs['dropped_columns']}. The layer is chosen on the pairs "
                    "that also measure it, which favours each fit a little.",
                    estimand=f"score: change of {words.metric(attrs)} in the corrupt run when the "
                    "fit takes the state's place; R²: share of the variance of the states over "
                    f"pairs that the fit explains{fit_words(sites)}",
                    n=n,
                    interval=f"{INTERVAL_WORDS}, of the score; of R² {ONE_FIT}",
                    null=f"{null} R²: 0 or less for a fit that is no better than the mean state",
                ),
            )
        ],
    )


def _space_section(results: xr.DataTree) -> Section | None:
    """The helix in three dimensions, for each period with a plane."""
    planes = reading.group(results, "helix/planes")
    if planes is None or "linear" not in planes:
        return None
    frame = figures.planes_frame(planes)
    size = frame.groupby("period")["sin"].apply(lambda sin: sin.abs().max())
    periods = sorted(size.index[size > 1e-9], reverse=True)
    if not periods:
        return None
    views = {f"T = {period:g}": figures.helix_in_space(frame, period) for period in periods}
    return Section(
        "The helix in space",
        [
            Figure(
                title="One plane of the helix along the line of numbers",
                views=views,
                switch="Period",
                caption=Caption(
                    text="The mean state of each number, by its coordinates in one plane of the "
                    "fitted helix and along its linear direction; the grey curve is the fit. Drag "
                    "to turn it.",
                    estimand=IN_PLANES,
                    n=f"{frame['number'].nunique():,} numbers",
                    interval=NOT_DRAWN,
                    null=OFF_THE_CURVE,
                ),
                alt="Numbers along a helix in three dimensions.",
                data=frame,
                width=420,
            )
        ],
    )
