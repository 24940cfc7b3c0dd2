"""The page of a training run."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import words
from mechnum.report.blocks import Caption, Figure, Text
from mechnum.report.figures.training import excess_line, training_lines
from mechnum.report.intervals import ONE_RUN
from mechnum.report.page import Page, Section
from mechnum.report.sections.provenance import provenance_section

Points = list[tuple[str, str]]

# Share of right answers from which a part counts as known.
_KNOWN = 0.99


def training_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.training.training_curves` gives."""
    curves = results["training"].to_dataset().to_dataframe().reset_index()
    if "bound" in curves:
        found, figure = _of_process(curves)
    else:
        found, figure = _of_prompts(curves, float(results.attrs["train_fraction"]))
    return Page(
        title=f"Training {results.attrs.get('model', 'a net')}",
        lead=f"{words.number(int(curves['step'].iloc[-1]))} steps in "
        f"{curves['seconds'].iloc[-1] / 60:,.0f} minutes by the clock on one thread.",
        sections=[
            Section("What was found", [Text(points=found), figure]),
            provenance_section(results),
        ],
    )


def _of_prompts(curves: pd.DataFrame, fraction: float) -> tuple[Points, Figure]:
    """What was found where answers are learned, and the curves."""
    found = _found(curves)
    figure = Figure(
        title="Loss and accuracy by step",
        views={"curves": training_lines(curves)},
        caption=Caption(
            text="Lines are scores of all prompts of each part, after the step. Steps are on a "
            "plain axis, losses on a logarithmic one.",
            estimand="mean cross-entropy of the answer among all classes, in nats; share of "
            "prompts whose likeliest class is the answer",
            n=f"{len(curves):,} logged steps; about {words.percent(fraction)} of the prompts are "
            "trained on, all others held out",
            interval=ONE_RUN,
            null=words.MEMORISED,
        ),
        alt=f"Lines of loss and accuracy by step. {' '.join(text for _, text in found)}",
        data=curves,
    )
    return found, figure


def _of_process(curves: pd.DataFrame) -> tuple[Points, Figure]:
    """What was found where a process is predicted, and the curve."""
    bound = float(curves["bound"].iloc[-1])
    excess = curves["heldout_loss"] - bound
    last = float(excess.iloc[-1])
    above = f", {words.percent(max(last, 0) / bound)} of it" if bound > 0 else ""
    text = (
        f"the loss is {words.number(float(curves['heldout_loss'].iloc[-1]), 5)} nats, "
        f"{words.number(last)} above the least possible one{above}."
    )
    figure = Figure(
        title="Loss above the least possible one by step",
        views={"curves": excess_line(curves["step"], excess)},
        caption=Caption(
            text=f"No net can predict the process with less than {words.number(bound, 5)} nats, "
            "the entropy of the next token given all tokens before it, mean over the positions.",
            estimand="mean divergence of the net's distribution of the next token from the exact "
            "one, in nats, after strings that are held out",
            n=f"{len(curves):,} logged steps, the same strings and all their positions at each",
            interval=f"{ONE_RUN}; exact distributions, so that the draw of tokens adds no noise",
            null="0: the best prediction there is",
        ),
        alt=f"A line of loss by step. At the end {text}",
        data=curves.assign(excess=excess),
    )
    return [("At the end", text)], figure


def _found(curves: pd.DataFrame) -> Points:
    """The last scores, and when the net first knew what it was not trained on."""
    last = curves.iloc[-1]
    held_out, trained_on = (
        f"{words.percent(last[f'{part}_accuracy'])} of the prompts {name} are right "
        f"(loss {words.number(float(last[f'{part}_loss']))} nats)"
        for part, name in (("heldout", "held out"), ("train", "trained on"))
    )
    points = [("At the end", f"{held_out}; {trained_on}.")]
    for part, name in (("train", "Trained on"), ("heldout", "Held out")):
        right = curves.loc[curves[f"{part}_accuracy"] >= _KNOWN, "step"]
        reached = f"first at step {int(right.iloc[0]):,}" if len(right) else "never"
        points.append((f"{name}, {words.percent(_KNOWN)} right", f"{reached} of those logged."))
    return points
