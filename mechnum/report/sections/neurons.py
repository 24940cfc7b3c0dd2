"""Sections about neurons: the table, where the best are, how many are needed, their waves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.neuron_frames import (
    MOST_MAPS,
    accuracy_frame,
    layer_frame,
    mlp_frame,
    neuron_maps,
    period_counts,
    shown_frame,
)
from mechnum.report.page import Section

WILSON = "95 % Wilson interval over prompts"
_R2_FLOOR = -0.25
_RANKINGS = {"direct": "direct effect", "estimate": "estimated total effect"}


def table_section(results: xr.DataTree) -> Section:
    """Every described neuron with its scores, its formula, its heuristics and its map."""
    frame, attrs = shown_frame(results), reading.attributes(results)
    maps = neuron_maps(results)
    text = (
        f"The neurons with the largest {_RANKINGS[str(attrs['ranked_by'])]}, chosen on "
        f"{attrs['n_chosen_on']} pairs and measured on {attrs['n_held_out']} others. The fit "
        "names the largest terms first; T_in is the period that a neuron reads in a+b, T_out the "
        "one that it writes to the logits of numbers; no_period says why one is missing; "
        "a+b_share is how much of the power of its waves is of a+b alone. "
        "Filter with words, total>0.1 or T_in=10."
    )
    if maps is not None:
        text += " A map shows the activation for each a (down) and b (across): open it."
        if len(frame) > MOST_MAPS:
            frame = frame.head(MOST_MAPS)
            text += f" The first {MOST_MAPS} neurons are here, neurons.csv has all."
    table = Table(
        title="Neurons",
        frame=frame,
        maps=maps,
        caption=Caption(
            text=text,
            estimand=f"Change of {words.metric(attrs)} in the {words.patched_run(attrs)} run when "
            "the neuron's activation at the last position is replaced (total), or when what it "
            "writes reaches the logits alone (direct); estimate: the gradient's estimate of total",
            n=f"{attrs['n_held_out']} pairs",
            interval=INTERVAL_WORDS,
            null="0; q: sign flips of pairs, Benjamini-Hochberg among these neurons",
        ),
    )
    return Section("Top neurons", [table])


def layers_section(results: xr.DataTree) -> Section | None:
    """Where the best neurons of all are; nothing to say of a single layer."""
    frame, attrs = layer_frame(results), results["rank/neurons"].attrs
    if len(frame) < 2:
        return None
    shape = results["rank/neurons"].sizes
    n_neurons = shape["layer"] * shape["neuron"]
    best = max(1, round(n_neurons / 100))
    named = {name: title for name, title in _RANKINGS.items() if name in frame}
    found = [
        f"{int(attrs[f'found_{name}']):,} by {title}"
        for name, title in named.items()
        if f"found_{name}" in attrs
    ]
    figure = Figure(
        title="The best 1 % of neurons by layer",
        views={"layers": figures.layer_share_bars(frame, named)},
        caption=Caption(
            text=f"How much of the best {best:,} of {n_neurons:,} neurons each layer has. With "
            f"q < {words.SURE:g} among all neurons there are {words.listed(found)}.",
            estimand="Mean effect over the pairs that neurons are chosen on",
            n=f"{reading.attributes(results)['n_chosen_on']} pairs",
            interval="none: a count, by the means alone; a neuron near the edge of the best 1 % "
            "may be on either side",
            null=f"{words.percent(1 / shape['layer'])} in each layer",
        ),
        alt="Bars of shares by layer.",
        data=frame,
        width=420,
    )
    return Section("Where they are", [figure])


def accuracy_section(results: xr.DataTree) -> Section | None:
    """How many neurons are needed, and how many of them their fits can stand in for."""
    frame = accuracy_frame(results)
    if frame is None:
        return None
    kept = results["kept"].to_dataset()
    whole, none = float(kept["model_accuracy"]), float(kept["ablated_accuracy"])
    figure = Figure(
        title="Accuracy with the best neurons alone",
        views={"accuracy": figures.accuracy_curves(frame)},
        caption=Caption(
            text="The best k neurons are kept, or made to do what their fits say; all other "
            "neurons of all layers have their mean activation at the last position. The whole "
            f"model answers {words.percent(whole)} of these prompts, and "
            f"{words.percent(none)} with every neuron at its mean. A kept neuron also feels what "
            "the ablation changes before it; a fit does not (in gated MLPs the factor that was not "
            "fitted does), and can do better.",
            estimand="Share of prompts whose most likely token is the right answer",
            n=f"{kept.sizes['prompt']} prompts",
            interval=f"{WILSON}; of random orders, the mean with the outermost ends",
            null="random neurons, fits of other neurons, and fits for other prompts",
        ),
        alt="Lines of accuracy against the number of neurons kept.",
        data=frame,
        width=420,
    )
    return Section("How many are needed", [figure])


def fits_section(results: xr.DataTree) -> Section:
    """How well waves describe neurons, which periods are read and written, and the MLPs."""
    attrs = results["fits"].attrs
    fits = results["fits"].to_dataset()
    top = results["neurons"].to_dataset()["r2"].values
    every = fits["r2"].values.ravel()
    every = every[np.isfinite(every)]
    good = float(np.mean(every > 0.5)) if len(every) else float("nan")
    periods = ", ".join(f"{period:.4g}" for period in fits["period"].values)
    terms = "Linear terms and cosines" if "slope" in fits else "Cosines"
    blocks: list[Block] = [
        Figure(
            title="How well waves fit",
            views={
                "R²": figures.ecdf_lines(
                    {"described neurons": top, "all neurons": every},
                    "R² of held-out prompts",
                    _R2_FLOOR,
                )
            },
            caption=Caption(
                text=f"{terms} of T = {periods} in "
                f"{words.listed(list(map(str, fits['variable'].values)))}, fitted to "
                f"{'pre-activations' if attrs.get('of') == 'pre' else 'activations'}. "
                f"{words.percent(good)} of all neurons have an R² above 0.5.",
                estimand=f"R² of prompts held out in {attrs.get('folds', 5)} folds",
                n=f"{len(every):,} neurons, {results['maps'].sizes['prompt']:,} prompts",
                interval="none: the lines are the neurons themselves",
                null="0: the mean of the other prompts",
            ),
            alt="Falling lines: share of neurons above each R².",
            data=pd.DataFrame({"node": results["neurons"]["node"].values, "r2": top}),
            width=420,
        )
    ]
    counts = period_counts(results)
    if counts is not None and counts.to_numpy().sum():
        blocks.append(_periods(results, counts))
    mlps = mlp_frame(results)
    if mlps is not None and mlps["direct_share"].notna().sum() > 1:
        blocks.append(_mlps(results, mlps))
    return Section("What they compute: waves", blocks)


def _periods(results: xr.DataTree, counts: pd.DataFrame) -> Figure:
    found = results["periods"].to_dataset()
    share, null, p = (float(found[name]) for name in ("agreement", "agreement_null", "agreement_p"))
    return Figure(
        title="Periods read and written",
        views={"periods": figures.period_map(counts, "T_in", "T_out, by the fit's periods")},
        caption=Caption(
            text=f"{words.percent(share)} of the neurons write the period that they read; with the "
            f"periods written dealt out at random it is {words.percent(null)} "
            f"(p {words.q_value(p)}). T_in is the period of the largest cosine in a+b, T_out that "
            "of the strongest wave in W_out · W_U over number tokens."
            + (
                " Here T_in is of the activation, in which products of waves in a and in b are "
                "waves in a+b."
                if "frequencies" in results.children
                else ""
            ),
            estimand="Number of neurons by T_in and T_out; share of those where the two are equal",
            n=f"{int(counts.to_numpy().sum()):,} of {found.sizes['node']:,} neurons have both",
            interval="none: a count of these neurons; p judges the share",
            null=f"T_out permuted among these neurons, {found.attrs['permutations']:,} times",
        ),
        alt=f"Map of T_in against T_out; {words.percent(share)} lie where both agree.",
        data=counts.rename_axis("t_in").reset_index(),
        width=360,
        widest=640,
    )


def _mlps(results: xr.DataTree, frame: pd.DataFrame) -> Figure:
    attrs = results["mlps"].attrs
    r2, p = float(attrs["r2"]), float(attrs["p"])
    said = "Too few MLPs for a correlation."
    if np.isfinite(r2):
        said = f"R² = {words.number(r2)} over {attrs['n_layers']} MLPs (p {words.q_value(p)})."
    return Figure(
        title="MLPs that write the answer, and neurons of the sum",
        views={"mlps": figures.mlp_scatter(frame)},
        caption=Caption(
            text="How much of an MLP's total effect is direct, against the share of a+b in the "
            f"waves of its best neurons. {said} The paper has R² = 0.788 for GPT-J's circuit.",
            estimand="DE / TE; mean of Σ c²(a+b) / Σ c² over the layer's neurons among the best "
            f"{attrs['n_best']:,}",
            n=f"{reading.attributes(results)['n_pairs']} pairs",
            interval=INTERVAL_WORDS,
            null="layers permuted",
        ),
        alt=f"Scatter of MLPs. {said}",
        data=frame,
        width=380,
        widest=640,
    )
