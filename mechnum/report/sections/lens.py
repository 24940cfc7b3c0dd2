"""Sections about the Fourier lens: maps, outliers, the answer rebuilt, and the final logits."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.figures.waves import lens_maps, rebuilt_lines, spectrum_bars
from mechnum.report.intervals import mean_interval
from mechnum.report.page import Section
from mechnum.report.wave_frames import (
    lens_frame,
    outlier_frame,
    rebuilt_frame,
    spectrum_frame,
    state_name,
)

_READINGS = {
    "own": "through the final norm with the state's own statistics",
    "frozen": "through the final norm with the scale of the prompt's last residual",
    "none": "through the unembedding alone, without the final norm",
}
PROMPTS_INTERVAL = "95 % percentile bootstrap over prompts, for each value by itself"
_NULL = (
    "number tokens in random order ({count} times). A circle marks a frequency whose log power "
    "lies more than 3.5 robust standard deviations above the median of its state's frequencies, "
    "and whose power is above the largest of any frequency in 95 % of the random orders"
)


def lens_sections(results: xr.DataTree) -> list[Section]:
    """What states say (logit lens), and what they give to the logits (attribution)."""
    sections = []
    for path, title, what in (
        (
            "lens",
            "What each state would answer",
            "As if each state were the last one, so rows do not add up. The residual after the "
            "last layer gives the model's own logits.",
        ),
        (
            "attribution",
            "What each state gives to the logits",
            "The embedding and all attention and MLP writes of a prompt add up to its logits, "
            "wave by wave; the mean sizes that are drawn here do not.",
        ),
    ):
        dataset = reading.group(results, path)
        if dataset is None:
            continue
        frame = lens_frame(dataset)
        blocks: list[Block] = [_maps(results, dataset, frame, what)]
        if "outlier" in frame:
            blocks.append(_outliers(results, frame, dataset))
        sections.append(Section(title, blocks))
    return sections


def rebuilt_section(results: xr.DataTree) -> Section | None:
    """Accuracy by the number of frequencies left, and the waves of the final logits."""
    blocks: list[Block] = []
    rebuilt = reading.group(results, "rebuilt")
    if rebuilt is not None:
        frame = rebuilt_frame(rebuilt, reading.seed(results))
        blocks.append(_rebuilt(frame, rebuilt))
    logits = reading.group(results, "logits")
    if logits is not None:
        blocks.append(_spectrum(logits, reading.seed(results)))
    return Section("The final logits", blocks) if blocks else None


def strongest_words(frame: pd.DataFrame, stage: str, layer: int, count: int = 5) -> str:
    """The outliers of one state in words, largest share first."""
    own = outlier_frame(frame)
    own = own[(own["stage"] == stage) & (own["layer"] == layer)].head(count)
    return words.listed(
        [
            f"T = {words.number(row['period'], 3)} (k = {int(row['frequency'])}, "
            f"{words.percent(row['share'])})"
            for row in own.to_dict("records")
        ]
    )


def _maps(results: xr.DataTree, dataset: xr.Dataset, frame: pd.DataFrame, what: str) -> Figure:
    attrs = reading.attributes(results, dataset)
    views = {"amplitude": lens_maps(frame, "amplitude", "logits")}
    if "share" in frame:
        views = {"share of power": lens_maps(frame, "share", "share of power"), **views}
    place = words.place(attrs)
    layers = sorted(set(frame.loc[frame["stage"] == "resid", "layer"]))
    last = strongest_words(frame, "resid", layers[-1])
    null = "none: number tokens were not put in random order"
    if "share" in frame:
        null = _NULL.format(count=attrs.get("permutations"))
    n_numbers = int(attrs["n_numbers"])
    return Figure(
        title="Waves over numbers by layer",
        views=views,
        caption=Caption(
            text=f"Each row is a state at {place}, each column a wave over the number tokens 0 to "
            f"{n_numbers - 1}; the constant is left out. Their periods are {n_numbers}/k, so that "
            f"those near 10, 5 and 2 may be none of these exactly. {what}",
            estimand=_estimand(attrs),
            n=_prompts(attrs),
            interval="standard errors of the amplitudes are in the table",
            null=null,
        ),
        alt=f"Maps of layers and frequencies. Strongest in the last residual: {last or 'none'}.",
        data=frame,
        width=560,
        switch="Show",
    )


def _estimand(attrs: dict[str, Any]) -> str:
    """What the amplitudes and shares of the lens are."""
    return (
        f"Logits of the number tokens {_READINGS.get(str(attrs.get('norm')), '')}: mean over "
        "prompts of the amplitude (root of squared sine and cosine coefficient), or of the squared "
        "amplitude as a share of that of all frequencies"
    )


def _prompts(attrs: dict[str, Any]) -> str:
    return f"{int(attrs['n_prompts']):,} prompts, right and wrong answers"


def _outliers(results: xr.DataTree, frame: pd.DataFrame, dataset: xr.Dataset) -> Table:
    found = outlier_frame(frame)
    named = [
        state_name(stage, int(layer))
        for stage, layer in zip(found["stage"], found["layer"], strict=True)
    ]
    chance = float(dataset["chance"].median())
    attrs = reading.attributes(results, dataset)
    return Table(
        title="Frequencies that stand out",
        frame=found.assign(state=named)[
            ["state", "frequency", "period", "share", "amplitude", "standard_error", "robust_z",
             "p"]
        ],
        caption=Caption(
            text="Largest share of its state's power first. In random order of the number tokens "
            f"the strongest frequency has {words.percent(chance)} in the median.",
            estimand=_estimand(attrs) + "; robust_z: log power above the median of the state's "
            "frequencies, in robust standard deviations",
            n=_prompts(attrs),
            interval="standard_error is that of the amplitude, over prompts",
            null="p: how often some frequency has as much power in random order, for each state by "
            "itself; states are not corrected for each other",
        ),
    )  # fmt: skip


def _rebuilt(frame: pd.DataFrame, rebuilt: xr.Dataset) -> Figure:
    return Figure(
        title="The answer rebuilt from few waves",
        views={"accuracy": rebuilt_lines(frame)},
        caption=Caption(
            text="The final logits of the number tokens with only some frequencies left; the "
            "answer is the number with the largest of them. "
            f"{enough_words(frame, rebuilt)}",
            estimand="Share of prompts whose answer is right among the numbers",
            n=words.count_range(frame["n"], "prompts"),
            interval=PROMPTS_INTERVAL,
            null="frequencies that come in at random, the same for all prompts",
        ),
        alt=f"Lines of accuracy by number of frequencies. {enough_words(frame, rebuilt)}",
        data=frame,
        width=420,
    )


def enough_words(frame: pd.DataFrame, rebuilt: xr.Dataset) -> str:
    """How many frequencies are enough for 95 % of the accuracy with all of them."""
    whole = float(rebuilt["correct_unfiltered"].mean())
    parts = []
    for ranking, what in (("prompt", "each prompt's own"), ("mean", "those on average")):
        rows = frame[(frame["ranking"] == ranking) & (frame["accuracy"] >= 0.95 * whole)]
        if whole and len(rows):
            parts.append(f"{int(rows['kept'].min())} of {what}")
    if not parts:
        return "The logits as they are give no right answer." if not whole else ""
    return (
        f"With all frequencies {words.percent(whole)} are right; the strongest {' or '.join(parts)}"
        " are enough for 95 % of that."
    )


def _spectrum(logits: xr.Dataset, seed: int) -> Figure:
    frame = spectrum_frame(logits, seed)
    best = frame.nlargest(4, "amplitude")["period"]
    named = words.listed([words.number(float(period), 3) for period in best])
    slope = mean_interval(logits["slope"], dim="prompt", seed=seed)
    mean, low, high = (float(slope[name]) for name in ("mean", "low", "high"))
    falling = float((logits["slope"] < 0).mean())
    text = (
        "Final logits over numbers, each prompt's without its linear trend and scaled to "
        f"[{words.MINUS}1, 1]. Largest periods: {named}. The trend is "
        f"{words.interval(mean, low, high)} logits for each number, and falls in "
        f"{words.percent(falling)} of prompts."
    )
    return Figure(
        title="Waves of the final logits",
        views={"spectrum": spectrum_bars(frame)},
        caption=Caption(
            text=text,
            estimand="Mean over prompts of the amplitude of each frequency",
            n=words.count_range(frame["n"], "prompts"),
            interval=PROMPTS_INTERVAL,
            null="number tokens in random order: all frequencies about alike. A smooth course over "
            "the numbers has large long periods without any wave",
        ),
        alt=f"Bars of amplitude by period. Largest: {named}.",
        data=frame,
        width=560,
    )
