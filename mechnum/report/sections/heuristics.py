"""Sections about the bag of heuristics, and about which description of a neuron is better."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.neuron_frames import (
    STATE_NAMES,
    kind_frame,
    knock_out_frame,
    verdict_frame,
)
from mechnum.report.page import Section
from mechnum.report.sections.neurons import WILSON


def heuristics_section(results: xr.DataTree) -> Section:
    """How many neurons match which kind, and what is lost without them."""
    frame, attrs = kind_frame(results), results["heuristics"].attrs
    some = frame.set_index("kind").loc["any"]
    blocks: list[Block] = [
        Figure(
            title="Neurons by kind of heuristic",
            views={"kinds": figures.kind_bars(frame)},
            caption=Caption(
                text=f"{int(some['neurons']):,} neurons ({words.percent(some['share'])}) match a "
                "heuristic; one neuron may match several kinds.",
                estimand="|top-k prompts ∩ prompts of the heuristic| / k, a match from "
                f"{attrs['threshold']:g}; ties by their expected overlap",
                n=f"{results['heuristics'].sizes['node']:,} neurons, "
                f"{results['heuristics'].sizes['heuristic']:,} heuristics",
                interval="none: counts of these neurons, a match also needs q ≤ "
                f"{attrs['alpha']:g}",
                null=words.sentence(str(attrs["null"])),
            ),
            alt="Bars of the number of neurons of each kind.",
            data=frame,
            width=360,
        )
    ]
    knocked = knock_out_frame(results)
    if knocked is not None and len(knocked):
        blocks.append(_knock_out(knocked))
    by_prompt = reading.group(results, "by_prompt")
    if by_prompt is not None:
        blocks.append(_by_prompt(by_prompt))
    return Section("What they compute: heuristics", blocks)


def _knock_out(frame: pd.DataFrame) -> Figure:
    return Figure(
        title="Without the neurons of a heuristic",
        views={"accuracy": figures.knock_out_bars(frame)},
        caption=Caption(
            text="All described neurons that match a heuristic are set to 0 at the last position: "
            "for prompts that it holds for, and for others. Without a knock-out every one of these "
            "prompts is answered correctly.",
            estimand="Share of trials, of one heuristic and one prompt, with the right answer",
            n=words.count_range(frame["n"], "trials"),
            interval=WILSON.replace("prompts", "trials"),
            null="as many random neurons of the same layers, drawn anew for each trial",
        ),
        alt="Bars of accuracy by kind of heuristic, for related and unrelated prompts.",
        data=frame,
        width=480,
    )


def _by_prompt(found: xr.Dataset) -> Table:
    frame = found[["accuracy", "low", "high"]].to_dataframe().reset_index()
    mean = float(found["n_neurons"].mean())
    return Table(
        title="Prompt by prompt",
        frame=frame,
        caption=Caption(
            text="Each prompt loses the described neurons whose heuristics hold for it, at most "
            f"{found.attrs['per_layer']} in a layer, {words.number(mean)} in the mean.",
            estimand="share of prompts that are still answered correctly when their neurons are "
            "set to 0 at the last position",
            n=f"{found.sizes['prompt']} prompts that the model answers correctly",
            interval=WILSON,
            null="as many random neurons of the same layers",
        ),
    )


def verdict_section(results: xr.DataTree) -> Section | None:
    """Waves or heuristics: which predicts what was held out."""
    found = reading.group(results, "adjudication")
    if found is None:
        return None
    frames = {STATE_NAMES[s]: verdict_frame(results, s) for s in found["of"].values.tolist()}
    data = pd.concat([one.assign(state=name) for name, one in frames.items()], ignore_index=True)
    return Section(
        "Waves or heuristics",
        [
            Figure(
                title="Which description predicts better",
                views={name: figures.verdict_scatter(frame) for name, frame in frames.items()},
                switch="Of the",
                caption=Caption(
                    text=f"{_counts_in_words(frames)} A cosine fits a pre-activation best and an "
                    "indicator an activation, so that both are judged. Points below the floor of "
                    "the axes stand at it.",
                    estimand="R² of held-out prompts: least squares on the terms of the fits "
                    "above, or on a constant and the indicators of the heuristics that match "
                    f"on the training prompts; {found.attrs['folds']} folds",
                    n=f"{len(next(iter(frames.values()))):,} neurons",
                    interval="95 % percentile bootstrap of the difference over held-out prompts",
                    null=f"a difference within ± {found.attrs['margin']:g} is none",
                ),
                alt=f"Scatter of R² of waves against heuristics. {_counts_in_words(frames)}",
                data=data,
                width=420,
                widest=640,
            )
        ],
    )


def _counts_in_words(frames: dict[str, pd.DataFrame]) -> str:
    said = []
    for name, frame in frames.items():
        counts = frame["verdict"].value_counts()
        parts = [f"{counts.get(verdict, 0):,} {verdict}" for verdict in figures.VERDICTS]
        said.append(f"Of the {name}: {words.listed(parts)}.")
    return " ".join(said)
