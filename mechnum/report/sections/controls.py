"""Sections about the helix's tests and controls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.frames import score_frame
from mechnum.report.intervals import INTERVAL_WORDS, ONE_FIT, mean_interval
from mechnum.report.page import Section


def ablation_section(results: xr.DataTree) -> Section | None:
    """What is lost when a subspace is replaced by its mean."""
    dataset = reading.group(results, "ablation")
    if dataset is None:
        return None
    attrs = reading.attributes(results, dataset)
    frame = score_frame(dataset, reading.seed(results))
    size = int(dataset["parameters"].sel({"method": dataset["method"].values[-1]}))
    return Section(
        "Ablation of the helix",
        [
            Figure(
                title="What is lost with each subspace",
                views={"score": figures.ablation_bars(frame, words.unit(attrs))},
                caption=Caption(
                    text="The part of the clean run's state that lies in a subspace is replaced by "
                    "its mean over prompts. What the answer needs lies in the helix as far as its "
                    "bars reach those of the whole state.",
                    estimand=f"Change of {words.metric(attrs)} in the clean run at "
                    f"{words.place(attrs)}; {size} dimensions each but for the whole state",
                    n=words.count_range(frame["n"], "pairs"),
                    interval=INTERVAL_WORDS,
                    null="random: as many dimensions drawn among all, and among the principal "
                    "components that the fits use",
                ),
                alt="Bars of the effect of ablating the whole state, the helix, as many principal "
                "components, and random subspaces, by layer.",
                data=frame,
                width=480,
            )
        ],
    )


def variables_section(results: xr.DataTree) -> Section | None:
    """Helices in several variables at the last token, beside PCA."""
    dataset = reading.group(results, "variables")
    if dataset is None:
        return None
    attrs = reading.attributes(results, dataset)
    frame = score_frame(dataset, reading.seed(results))
    sizes = zip(dataset["method"].values, dataset["parameters"].values, strict=True)
    counted = words.listed(
        [f"{int(size)} of {name}" for name, size in sizes if name.startswith("helix")]
    )
    inside = attrs["folds"] == "in sample"
    shared = "in sample" if inside else f"out of sample: {attrs['folds']} folds of numbers"
    here = f"at {attrs['position']}"
    return Section(
        "Which numbers the state holds",
        [
            Figure(
                title="How well helices of the operands and the sum explain the states",
                views={"r2": figures.r2_by_layer({here: frame})},
                caption=Caption(
                    text="R² of helices in one and several variables, and of PCA of their sizes, "
                    f"by layer. Independent directions: {counted}.",
                    estimand="Share of the variance of the clean states over pairs that the fit "
                    f"explains ({shared})",
                    n=words.count_range(frame["n"], "pairs"),
                    interval=ONE_FIT,
                    null="0 or less: the fit predicts no better than the mean state",
                ),
                alt="Lines of R² by layer for helices of a and b, of their sum, and of all three.",
                data=frame[["layer", "method", "r2"]],
                width=420,
            ),
            Figure(
                title="What helices of the operands and the sum cause",
                views={"score": figures.scores_by_layer({here: frame}, words.unit(attrs))},
                caption=Caption(
                    text="The state at the last position of the corrupt run is overwritten by what "
                    "each fit says of the clean numbers. Bands are intervals.",
                    estimand=f"Change of {words.metric(attrs)} in the corrupt run",
                    n=words.count_range(frame["n"], "pairs"),
                    interval=INTERVAL_WORDS,
                    null="0: what was written does not move the answer",
                ),
                alt="Lines of causal score by layer for the same helices.",
                data=frame.drop(columns="r2"),
                width=420,
            ),
        ],
    )


def search_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """One row for each subset of periods, best first: by what it was chosen, and its score.

    Columns: periods, n, `best of its size`, `chosen by` (mean over layers of the pairs that
    choose), `score` with the ends of its interval (mean over layers of the other pairs), `r2`
    (mean over layers).
    """
    dataset = reading.group(results, "search")
    if dataset is None:
        return None
    scoring = np.flatnonzero(dataset["scoring"].values)
    kept = dataset["score"].isel(pair=scoring).mean("layer")
    table = mean_interval(kept.transpose("pair", "subset"), seed=reading.seed(results))
    frame = pd.DataFrame(
        {
            "periods": dataset["periods"].values.astype(str),
            "n": dataset["n_periods"].values,
            "best of its size": np.where(dataset["best"].values, "yes", ""),
            "chosen by": dataset["chosen_by"].values,
            "score": table["mean"].values,
            "low": table["low"].values,
            "high": table["high"].values,
            "r2": dataset["r2"].mean("layer").values,
        }
    )
    return frame.sort_values("chosen by", ascending=False, kind="stable", ignore_index=True)


def search_section(results: xr.DataTree) -> Section | None:
    """Every subset of the periods."""
    frame, dataset = search_frame(results), reading.group(results, "search")
    if frame is None or dataset is None:
        return None
    attrs = reading.attributes(results, dataset)
    nested = "each contains" if attrs["nested"] == "true" else "not each contains"
    n_scoring = int(dataset["scoring"].sum())
    return Section(
        "Which periods",
        [
            Table(
                title="Subsets of the periods",
                frame=frame,
                caption=Caption(
                    text=f"Best subset: {attrs['best']}. Of the best ones of each size, {nested} "
                    f"the next smaller one. Cost: {attrs['cost']}.",
                    estimand=f"Mean over layers of the change of {words.metric(attrs)} in the "
                    "corrupt run when the helix of these periods is written. Chosen by pairs of "
                    "one half of the numbers, scored by the pairs of the other",
                    n=f"{n_scoring:,} pairs score, {dataset.sizes['pair'] - n_scoring:,} choose",
                    interval=INTERVAL_WORDS,
                    null="0: what was written does not move the answer. More periods explain more "
                    "whatever they are: a subset says something beside others of its size",
                ),
            )
        ],
    )


def continuity_section(results: xr.DataTree) -> Section | None:
    """Whether numbers that were left out of the fit lie in order on the circle."""
    dataset = reading.group(results, "continuity")
    if dataset is None:
        return None
    attrs = dataset.attrs
    period = words.number(float(attrs["period"]), 4)
    agreement, p = float(attrs["rank_agreement"]), float(attrs["p"])
    text = (
        f"The circle of T = {period} was fitted {_where(attrs)} to numbers that do not end in "
        f"{int(attrs['digit'])}; those that do are projected on it and joined in order. Circular "
        f"rank agreement {words.number(agreement)} (p {words.q_value(p)}), mean distance from the "
        f"expected angle {words.number(float(attrs['angle_error']))}°."
    )
    frame = dataset.drop_dims("axis").to_dataframe().reset_index()
    frame["cos"], frame["sin"] = dataset["coordinates"].values.T
    return Section(
        "Continuity",
        [
            Figure(
                title="Numbers that the circle was not fitted to",
                views={"loop": figures.continuity_loop(dataset)},
                caption=Caption(
                    text=text,
                    estimand="Circular rank correlation of the held-out numbers with their angles; "
                    "distance from the angle 2πn/T",
                    n=f"{int(attrs['n_held_out'])} held-out numbers of {len(frame)}",
                    interval="none: one mean state for each number; p judges them together",
                    null=f"{int(attrs['permutations']):,} permutations of their angles; a chance "
                    "order has an agreement near 1/√n and a distance of 90°",
                ),
                alt=f"Numbers on a circle; those held out have a rank agreement of "
                f"{words.number(agreement)} with their order.",
                data=frame,
                width=420,
                widest=560,
            )
        ],
    )


def structure_section(results: xr.DataTree) -> Section | None:
    """How single numbers lie: along a line, and how far from each other."""
    dataset = reading.group(results, "structure")
    if dataset is None:
        return None
    attrs = dataset.attrs
    ripples = dataset["ripple"]
    strongest = {
        str(name): int(ripples["period"].values[int(ripples.sel(distance=name).argmax("period"))])
        for name in ripples["distance"].values
    }
    text = (
        f"Mean state of each number {_where(attrs)}. A line through the first principal component "
        f"of the standardised dimensions has R² = {words.number(float(attrs['pc1_r2']))} below 100"
    )
    jump = float(attrs["jump"])
    text += "." if np.isnan(jump) else f"; from 99 to 100 it jumps {words.number(jump)} mean steps."
    text += (
        f" Beside a cubic trend the strongest ripple has the period {strongest['euclidean']} in "
        f"Euclidean and {strongest['cosine']} in cosine distance."
    )
    frame = dataset[["euclidean", "cosine"]].to_dataframe().reset_index()
    return Section(
        "Single numbers",
        [
            Figure(
                title="A line, and distances that ripple",
                views={"structure": figures.structure_of_numbers(dataset)},
                caption=Caption(
                    text=text,
                    estimand="First principal component of the mean states; mean distance, and "
                    "1 − cosine, of all numbers that differ by as much",
                    n=f"{dataset.sizes['number']:,} numbers",
                    interval="none: one mean state for each number",
                    null="states dealt to the numbers at random: an R² near 0, and numbers far "
                    "apart no farther from each other than neighbours",
                ),
                alt="The first principal component by number, and distance by difference.",
                data=frame,
                width=640,
            )
        ],
    )


def linear_section(results: xr.DataTree) -> Section | None:
    """How often a linear code of the numbers adds right, beside the model."""
    dataset = reading.group(results, "linear")
    if dataset is None:
        return None
    widest = dataset["right"].isel(range=-1)
    layer = int(widest["layer"].values[int(widest.sel(fit="held out").argmax("layer"))])
    r2 = dataset["r2"].sel(layer=layer).mean("operand")
    fits = words.listed(
        [f"{words.number(float(r2.sel(fit=fit)), 4)} {fit}" for fit in r2["fit"].values]
    )
    frame = dataset[["right"]].to_dataframe().reset_index()
    blocks: list[Block] = [
        Figure(
            title="What a linear code of numbers could add",
            views={"linear": figures.linear_lines(dataset, layer)},
            caption=Caption(
                text="Each operand is read from its state by one direction; the sum of the two "
                f"readings is right where it rounds to a + b. Drawn {words.after_layer(layer)}, "
                "where the held-out reading adds best; all layers are in the table. The readings "
                f"have R² = {fits}.",
                estimand=f"Share of right sums; regression of n on {dataset.attrs['components']} "
                "principal components. In sample favours the linear code",
                n=f"{int(dataset['n'].values[-1]):,} sums, {int(dataset['n'].values[0]):,} in the "
                "smallest range; the model's share is over all prompts",
                interval="none: shares of these sums, coarse where a range has few",
                null="the model's own share: where the linear code falls short of it, the model "
                "does not add with that code alone",
            ),
            alt="Lines of the share of right answers by range for the model and a linear code.",
            data=frame,
            width=420,
        )
    ]
    return Section("Control: a linear code", blocks)


def _where(attrs: dict) -> str:
    return f"at {attrs['site']} {words.after_layer(int(attrs['layer']))}"
