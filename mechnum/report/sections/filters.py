"""Sections about filters: the ablation table, and the errors that each condition leaves."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.figures.waves import filter_bars
from mechnum.report.intervals import COUNTED
from mechnum.report.page import Section
from mechnum.report.sections.lens import PROMPTS_INTERVAL
from mechnum.report.sections.signature import EVEN_ERRORS, KINDS_OF
from mechnum.report.wave_frames import MODULES, condition_name, filter_frame

_ESTIMAND = (
    "Answers when waves over numbers are taken out of every write of the modules: y is the vector "
    "nearest to x in which the unembedding, without norm and bias, sees none of them; the constant "
    "is never removed on purpose. Random: as many directions drawn at random"
)
_NULL = "the same as the random directions: what matters is how much is removed, not what"
_MEASURES = ("loss", "accuracy")


def ablation_section(results: xr.DataTree) -> Section:
    """Loss and accuracy by what was removed from where."""
    frame = filter_frame(results["table"].to_dataset())
    n = words.count_range(frame["accuracy_n"], "prompts, right and wrong answers")
    figure = Figure(
        title="Accuracy without some waves",
        views={"accuracy": filter_bars(frame)},
        caption=Caption(
            text="Bars are accuracies, whiskers intervals; the dotted line is the model as it is.",
            estimand=_ESTIMAND,
            n=n,
            interval=PROMPTS_INTERVAL,
            null=_NULL,
        ),
        alt=f"Bars of accuracy. {ablation_words(frame)}",
        data=frame[[name for name in frame if name.split("_")[0] in
                    ("band", "modules", "projection", "rank", *_MEASURES)]],
        width=620,
    )  # fmt: skip
    table = Table(
        title="Loss and accuracy",
        frame=ablation_frame(frame, int(results.attrs["d_model"])),
        caption=Caption(
            text="Loss is \N{MINUS SIGN}log probability of the right answer among all tokens, in "
            "nats. Directions: how many of the residual stream's are removed.",
            estimand=_ESTIMAND,
            n=n,
            interval=PROMPTS_INTERVAL,
            null=_NULL,
        ),
    )
    return Section("Without some waves", [figure, table])


def ablation_frame(frame: pd.DataFrame, d_model: int) -> pd.DataFrame:
    """The ablation table as people read it: means with intervals, the control beside each."""
    rows = []
    for row in frame[frame["projection"] != "random"].to_dict("records"):
        control = frame[
            (frame["band"] == row["band"])
            & (frame["modules"] == row["modules"])
            & (frame["projection"] == "random")
        ].to_dict("records")
        cells = {
            "removed": row["band"],
            "from": MODULES.get(row["modules"], row["modules"]),
            "directions": f"{row['rank']} of {d_model}" if control else "",
        }
        for measure in _MEASURES:
            cells[measure] = _cell(row, measure)
            cells[f"{measure}, random"] = _cell(control[0], measure) if control else ""
        rows.append(cells)
    return pd.DataFrame(rows)


def errors_section(results: xr.DataTree) -> Section | None:
    """Histograms of errors, and shares of their kinds, for each condition that has some."""
    counts = reading.group(results, "errors")
    frame = filter_frame(results["table"].to_dataset())
    kinds = _kinds(frame)
    blocks: list[Block] = []
    if counts is not None:
        views = _histograms(counts, frame)
        if views:
            data = pd.concat([own.assign(condition=name) for name, own in views.items()])
            blocks.append(
                Figure(
                    title="Errors by what was removed",
                    views={name: figures.error_histogram(own) for name, own in views.items()},
                    caption=Caption(
                        text="How far the predicted number is from the answer, over all wrong "
                        "prompts whose prediction is a number. Conditions without such errors, and "
                        "random directions, are left out.",
                        estimand=words.ERROR,
                        n=words.count_range([int(own["count"].sum()) for own in views.values()],
                                            "wrong prompts"),
                        interval=COUNTED,
                        null=words.NO_PEAKS,
                    ),
                    alt="Histograms of predicted minus answer.",
                    data=data[["condition", "error", "count"]],
                    switch="Removed",
                )
            )  # fmt: skip
    if len(kinds):
        blocks.append(
            Table(
                title="Kinds of errors",
                frame=kinds,
                caption=Caption(
                    text="An error that is a multiple of 10 leaves the units digit right, an even "
                    "one the parity.",
                    estimand=KINDS_OF,
                    n="in the column “wrong numbers”: the wrong answers that are numbers",
                    interval=f"{PROMPTS_INTERVAL}; in results.nc",
                    null=f"{EVEN_ERRORS}; and the random directions",
                ),
            )
        )
    return Section("The errors that are left", blocks) if blocks else None


def ablation_words(frame: pd.DataFrame) -> str:
    """Each condition's accuracy in a sentence."""
    named = [
        f"{condition_name(row)}, {words.percent(row['accuracy'])}"
        for row in frame[frame["projection"] == "filter"].to_dict("records")
    ]
    return f"Accuracy with {'; '.join(named)}."


def _cell(row: dict, measure: str) -> str:
    ends = (row[measure], row[f"{measure}_low"], row[f"{measure}_high"])
    return words.interval(*(float(end) for end in ends), sign=False)


def _histograms(counts: xr.Dataset, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    views = {}
    for index, row in enumerate(frame.to_dict("records")):
        if row["projection"] == "random":
            continue
        own = counts["count"].isel(condition=index)
        table = pd.DataFrame({"error": counts["error"].values, "count": own.values})
        table = table[table["count"] > 0]
        if len(table):
            views[condition_name(row)] = table
    return views


def _kinds(frame: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in frame if f"{name}_n" in frame and name not in _MEASURES]
    rows = []
    for row in frame.to_dict("records"):
        numeric = int(row[f"{names[0]}_n"])
        shares = {name: row[name] for name in names}
        rows.append({"condition": condition_name(row), "wrong numbers": numeric, **shares})
    return pd.DataFrame(rows)
