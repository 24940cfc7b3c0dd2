"""Sections about a grokked net: its training, its frequencies and circles, logits and neurons."""

from __future__ import annotations

import json
import math

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.figures.training import training_lines
from mechnum.report.intervals import ONE_RUN
from mechnum.report.maps import Maps
from mechnum.report.page import Section

TABLES = {
    "W_E": "W_E, the embedding",
    "W_L": "W_L = W_out · W_U, the readout",
    "neurons": "neurons",
    "logits": "logits",
}
_EXACT = "none: exact, means over all pairs of one net"
PHASES = ("memorisation", "circuit formation", "clean-up")


def training_section(results: xr.DataTree) -> Section | None:
    """Losses and measures at each checkpoint with the phases, or the log where that is all."""
    over = reading.group(results, "over")
    blocks: list[Block] = []
    if over is not None and over.sizes["step"] > 1:
        blocks.append(_measures(over))
    log = reading.group(results, "training")
    if log is not None:
        frame = log.to_dataframe().reset_index()
        blocks.append(
            Figure(
                title="Loss and accuracy by step",
                views={"curves": training_lines(frame)},
                caption=Caption(
                    text="The log of the training run; losses on a logarithmic axis.",
                    estimand="mean cross-entropy of the answer in nats; share of pairs whose "
                    "likeliest class is the answer",
                    n=f"{len(frame):,} logged steps; {results.attrs['n_prompts']:,} pairs in two "
                    "parts, trained on and held out",
                    interval=ONE_RUN,
                    null=words.MEMORISED,
                ),
                alt="Lines of loss and accuracy by step.",
                data=frame,
            )
        )
    return Section("Over training", blocks) if blocks else None


def phase_spans(over: xr.Dataset) -> list[tuple[str, float, float]]:
    """The phases that were found, as name, first and last step; none where there are none."""
    found = json.loads(over.attrs.get("phases", "{}"))
    steps = over["step"].values
    ends = [float(steps[0]), *(found.get(name) for name in ("memorised", "formed", "cleaned"))]
    spans = []
    for name, first, last in zip(PHASES, ends, ends[1:], strict=False):
        if first is None or ends[1] is None or _generalises_at_once(over):
            break
        last = float(steps[-1]) if last is None else float(last)
        if last > first:
            spans.append((name, float(first), last))
    return spans


def _generalises_at_once(over: xr.Dataset) -> bool:
    """Whether the held-out loss falls from the first checkpoint on.

    Nothing was memorised then that a clean-up could remove, as where most pairs are trained on.
    """
    found = json.loads(over.attrs.get("phases", "{}"))
    return found.get("formed") is not None and found["formed"] == int(over["step"][0])


def _measures(over: xr.Dataset) -> Figure:
    step = over["step"].values
    split = "test" in over["part"].values
    trained, heldout = ("train", "test") if split else ("all", "all")
    losses = pd.DataFrame({"step": step})
    for part in ("train", "test") if split else ("all",):
        losses[f"{part} loss"] = over["loss"].sel(part=part).values
    losses[f"restricted ({heldout})"] = over["restricted_loss"].sel(part=heldout).values
    losses[f"excluded ({trained})"] = over["excluded_loss"].sel(part=trained).values
    shares = pd.DataFrame({"step": step})
    for name, title in {
        "gini_W_E": "Gini of W_E",
        "gini_W_L": "Gini of W_L",
        "key_share": "key part of the logits",
        "mean_explained": "neurons explained, mean",
    }.items():
        if name in over:
            shares[title] = over[name].values
    weights = pd.DataFrame({"step": step, "squared weights": over["squared_weights"].values})
    spans = phase_spans(over)
    phases = phase_words(over)
    return Figure(
        title="Progress measures by step",
        views={
            "losses": figures.step_lines(losses, "nats", spans, logarithmic=True),
            "shares": figures.step_lines(shares, "share, or Gini coefficient", spans),
            "weights": figures.step_lines(weights, "sum of squares", spans, logarithmic=True),
        },
        caption=Caption(
            text=f"{phases} Restricted: the logits' waves of a + b at the key frequencies alone. "
            "Excluded: without them. Keys are those of the net at the end.",
            estimand="mean cross-entropy of pairs in nats, in float64; Gini coefficient of the "
            "lengths of a table's Fourier components; share of the logits' variance; share of each "
            "neuron's variance that is one frequency",
            n=f"{len(step)} checkpoints"
            + (", pairs trained on and others" if split else ", all pairs"),
            interval=ONE_RUN,
            null="memorising alone: the excluded loss stays down and the Gini coefficients low",
        ),
        alt=f"Lines of losses and measures by step. {phases}",
        data=losses.merge(shares, on="step").merge(weights, on="step"),
    )


def phase_words(over: xr.Dataset) -> str:
    """The phases in a sentence or two, or why there are none."""
    if "phases" not in over.attrs:
        known = "test" in over["part"].values
        why = "the curves allow none" if known else "the pairs that were trained on are not known"
        return f"No phases: {why}."
    spans = phase_spans(over)
    if _generalises_at_once(over):
        fallen = json.loads(over.attrs["phases"])["cleaned"]
        until = "" if fallen is None else f", and has fallen at step {fallen:,.0f}"
        return f"No phases: the held-out loss falls from the first checkpoint on{until}."
    if not spans:
        return "No phases are found in these curves."
    found = [f"{name} from step {first:,.0f} to {last:,.0f}" for name, first, last in spans]
    text = f"{words.sentence(words.listed(found))}, by a rule on these curves."
    if "memorisation" in [name for name, _, _ in spans]:
        return text
    return f"{text} There is no memorisation before it between these checkpoints."


def frequencies_section(results: xr.DataTree) -> Section:
    """Which frequencies the weights, the neurons and the logits have, and the circles."""
    spectra, circles = results["spectra"].to_dataset(), results["circles"].to_dataset()
    keys = results["progress"].to_dataset()["key"].values.tolist()
    flat = 1 / spectra.sizes["frequency"]
    named = words.listed([str(k) for k in keys])
    bars = Figure(
        title="Share of each frequency",
        views={"shares": figures.frequency_bars(spectra["share"], keys, TABLES)},
        caption=Caption(
            text=f"Key frequencies, coloured: {named}.",
            estimand="Weights: power over numbers or classes at cos and sin of 2πkn/p, without the "
            "constant. Neurons: mean over neurons of the share of variance over pairs in products "
            "of 1, cos and sin of one frequency in a and in b. Logits: share of their variance "
            "that is a wave of a + b",
            n=f"p = {results.attrs['p']}",
            interval="none: exact, the weights of one net and its values at all pairs",
            null=f"{words.percent(flat)} for each frequency of weights without any structure",
        ),
        alt=f"Bars of shares by frequency; keys are {named}.",
        data=spectra["share"].to_dataframe().reset_index(),
        width=420,
    )
    return Section("Frequencies and circles", [bars, circles_figure(circles)])


def circles_figure(circles: xr.Dataset) -> Figure:
    """The embedding in the plane of each circle."""
    purity = circles["purity"].values
    text = (
        "Each point is a number's embedding, centred, in the plane of the frequency's cosine and "
        "sine. Colours go around with the phase k·n/p; a point is off the circle by what other "
        f"frequencies have in the plane: {words.percent(float(1 - purity.min()))} of the variance "
        "there at most."
    )
    frame = circles["coordinates"].to_dataframe()["coordinates"].unstack("axis").reset_index()
    frame.columns.name = None
    return Figure(
        title="Circles of the embedding",
        views={"circles": figures.circle_panels(circles)},
        caption=Caption(
            text=text,
            estimand="Coordinates in units of the mean radius; percentages are the share of the "
            "embedding's variance over numbers that is a wave of the frequency",
            n=f"{circles.sizes['number']} numbers",
            interval="none: one net, the weights themselves",
            null="a cloud around 0 whose colours are mixed",
        ),
        alt=f"Points of numbers in {circles.sizes['frequency']} planes.",
        data=frame,
        width=420,
    )


def logits_section(results: xr.DataTree) -> Section:
    """The logits by sum and class, and the part that is waves at the keys."""
    logits = results["logits"].to_dataset()
    progress = results["progress"].to_dataset()
    titles = ("a + b mod p", "class c")
    share = words.percent(float(progress["key_share"]))
    maps = Figure(
        title="Logits by sum and class",
        views={
            name: figures.square_map(logits[variable], titles, "logits")
            for name, variable in (("all", "logit"), ("key part", "key_part"))
        },
        caption=Caption(
            text="The right class is on the diagonal. A net that adds by the clock has the same "
            f"logits along all diagonals. The key part holds {share} of the logits' variance.",
            estimand="Mean logit over the pairs of a sum, each class about its own mean; key part: "
            "its waves in a + b at the key frequencies",
            n=f"p = {results.attrs['p']} pairs for each sum",
            interval=_EXACT,
            null="near 0 in every cell: logits that do not depend on the sum",
        ),
        alt="Maps of logits by sum and class.",
        data=logits[["logit", "key_part"]].to_dataframe().reset_index(),
        width=380,
        widest=620,
    )
    lines = Figure(
        title="Logits by distance from the answer",
        views={
            "lines": figures.along_lines(
                {"all": logits["by_error"], "key part": logits["key_by_error"]},
                ("(a + b − c) mod p", "mean logit"),
            )
        },
        caption=Caption(
            text="The same along the diagonals, which a net that adds has highest at 0. "
            f"Σ α cos w(a + b − c) of the keys explains "
            f"{words.percent(float(progress['cosine_share']))} of the variance, and by itself has "
            f"a cross-entropy of {words.number(float(progress['cosine_loss']))} nats.",
            estimand="Mean over pairs and classes with this a + b − c",
            n=f"{results.attrs['n_prompts']:,} pairs",
            interval=_EXACT,
            null="flat near 0: logits in which a + b − c does not matter",
        ),
        alt="Lines of mean logits by (a + b − c) mod p.",
        data=logits[["by_error", "key_by_error"]].to_dataframe().reset_index(),
        width=380,
    )
    return Section("Logits", [maps, lines])


def neurons_section(results: xr.DataTree) -> Section | None:
    """The best explained neurons as maps over a and b."""
    maps = reading.group(results, "maps")
    if maps is None:
        return None
    frame = pd.DataFrame(
        {
            "neuron": maps["neuron"].values,
            "frequency": maps["frequency"].values,
            "explained": maps["explained"].values,
        }
    )
    numbers = maps.sizes["a"]
    progress = results["progress"].to_dataset()
    well = words.percent(float(progress["explained_neurons"]))
    table = Table(
        title="The best explained neurons",
        frame=frame,
        maps=Maps(
            column="map",
            names=[f"neuron {neuron}" for neuron in maps["neuron"].values],
            views={
                "activation": maps["activation"].values.astype(float),
                "pre-activation": maps["pre"].values.astype(float),
            },
            x=list(range(numbers)),
            y=list(range(numbers)),
            titles=("b", "a"),
        ),
        caption=Caption(
            text="A map shows the activation for each a (down) and b (across): open it. The "
            f"neurons of each key frequency that it explains best, in turn. {well} of all neurons "
            "are explained to 85 % or more.",
            estimand="Share of the activation's variance over pairs in products of 1, cos and sin "
            "of one frequency in a and in b",
            n=f"{results.attrs['n_prompts']:,} pairs; {progress.sizes['neuron']} neurons",
            interval=_EXACT,
            # cos and sin in a, in b, and their four products, of p² − 1 directions in all.
            null=f"{words.percent(8 / (numbers**2 - 1))} at one frequency, of values at random",
        ),
    )
    return Section("Neurons", [table])


def measures_section(results: xr.DataTree) -> Section:
    """Losses by part of the pairs, and every other number."""
    progress = results["progress"].to_dataset()
    parts, p = [str(part) for part in progress["part"].values], int(results.attrs["p"])
    rows = {
        "loss": progress["loss"],
        "accuracy": progress["accuracy"],
        "restricted loss": progress["restricted_loss"],
        "excluded loss, all keys": progress["excluded_loss"],
    }
    for key in progress["key"].values:
        rows[f"excluded loss, k = {key}"] = progress["excluded_loss_each"].sel(key=key)
    losses = pd.DataFrame.from_dict(
        {name: row.values for name, row in rows.items()}, orient="index", columns=parts
    )
    losses = losses.rename_axis("measure").reset_index()
    return Section(
        "Progress measures",
        [
            Table(
                title="Losses",
                frame=losses,
                caption=Caption(
                    text="Restricted: the key part of the logits alone, with each class's "
                    "mean. Excluded: without it, for all keys together and one at a time.",
                    estimand="mean cross-entropy in nats, in float64; share of right pairs",
                    n=f"{results.attrs['n_prompts']:,} pairs"
                    + ("" if len(parts) > 1 else "; the pairs trained on are not known"),
                    interval=_EXACT,
                    null=f"a guess: a loss of {words.number(math.log(p))} nats, an accuracy of "
                    f"{words.percent(1 / p)}. Keys that do not matter: an excluded loss as low as "
                    "the loss",
                ),
            ),
            Table(
                title="Weights and directions",
                frame=measure_frame(results),
                caption=Caption(
                    text="Nanda et al. 2023, sections 4 and 5.1.",
                    estimand="as the column “meaning” says of each",
                    n=f"{results.attrs['n_prompts']:,} pairs; those of W_E and W_L: one net",
                    interval="none: exact, of the weights and of all pairs of one net",
                    null="shares near 0: the key frequencies explain nothing; a Gini coefficient "
                    "near 0: all frequencies are alike; residual 1: W_L is outside the keys",
                ),
            ),
        ],
    )


def measure_frame(results: xr.DataTree) -> pd.DataFrame:
    """The measures that are one number, with what they mean."""
    progress = results["progress"].to_dataset()
    meanings = {
        "key_share": "share of the logits' variance in the key part",
        "cosine_share": "the same in Σ α cos w(a + b − c) of the keys",
        "cosine_loss": "cross-entropy of these cosines alone, nats",
        "explained_neurons": "share of neurons that one frequency explains to 85 %",
        "mean_explained": "mean share of a neuron's variance that one frequency explains",
        "gini_W_E": "Gini coefficient of the lengths of W_E's Fourier components",
        "gini_W_L": "the same of W_L over classes",
        "readout_rank": "directions that hold 99 % of W_L",
        "readout_residual": "length of W_L outside the key frequencies, as a share",
        "squared_weights": "sum of all squared parameters",
    }
    rows = [
        {"measure": name, "value": float(progress[name]), "meaning": meaning}
        for name, meaning in meanings.items()
        if name in progress
    ]
    if "direction_explained" in progress:
        shares = progress["direction_explained"]
        rows += [
            {
                "measure": f"{wave}, k = {key}",
                "value": float(shares.sel(key=key, wave=wave)),
                "meaning": "share of the variance along W_L's direction for this wave that is the "
                "wave of a + b",
            }
            for key in progress["key"].values
            for wave in progress["wave"].values
        ]
    attention = progress[["attention_explained", "attention_frequency"]].stack(at=("layer", "head"))
    rows += [
        {
            "measure": f"attention {layer}.{head}",
            "value": float(share),
            "meaning": f"share of the attention to a that is linear in waves of k = {int(k)}",
        }
        for (layer, head), share, k in zip(
            attention["at"].values,
            attention["attention_explained"].values,
            attention["attention_frequency"].values,
            strict=True,
        )
    ]
    return pd.DataFrame(rows)
