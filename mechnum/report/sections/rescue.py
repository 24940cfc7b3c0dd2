"""Sections of the rescue experiment: accuracy, spectra, filters and errors of each kind of net."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, words
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.page import Section

ARM_WORDS = (
    "Scratch: all weights start at random. Rescued: the number vectors of the embedding are "
    "Fourier features and frozen, all else starts at random. Fourier start: embedding and "
    "unembedding start from Fourier features, and everything is trained."
)
DISTANCES = ("1", "2", "3 to 5", "6 to 9", "10", "other")
_SHARE = {"tickformat": "~%", "rangemode": "tozero"}
_MODULES = {"both": "attention and MLPs", "attn": "attention", "mlp": "MLPs"}
_FLOOR = 1e-5  # Smaller shares are drawn as this much on the logarithmic axis.


def seeds_words(results: xr.DataTree) -> str:
    """`3 seeds`, of each kind of net."""
    return words.count_range([results["rescue"].sizes["seed"]], "seeds") + " of each"


def accuracy_section(results: xr.DataTree) -> Section:
    """Held-out accuracy and loss by step, and where each run ended."""
    curves = _frame(results, "curves")
    shown = curves.assign(heldout_loss=curves["heldout_loss"].where(curves["heldout_loss"] > 0))
    step = {"title": {"text": "step"}}
    figure = Figure(
        title="Prompts held out, by step",
        views={
            "accuracy": figures.arm_lines(
                curves,
                "step",
                "heldout_accuracy",
                xaxis=step,
                yaxis={"title": {"text": "accuracy"}, **_SHARE},
            ),
            "loss": figures.arm_lines(
                shown,
                "step",
                "heldout_loss",
                xaxis=step,
                yaxis={"title": {"text": "nats"}, "type": "log", "exponentformat": "power"},
            ),
        },
        caption=Caption(
            text=f"{ARM_WORDS} Thin lines are seeds, thick ones their means.",
            estimand="share of held-out prompts whose likeliest token is the answer; mean "
            "cross-entropy in nats",
            n=f"{_heldout(results)} held-out prompts; {seeds_words(results)}",
            interval="the seeds themselves",
            null="scratch: what training finds of itself, without Fourier features to start from",
        ),
        alt="Lines of held-out accuracy by step for each kind of net.",
        data=curves,
    )
    frame = _frame(results, "rescue").rename(columns={"reached": "step with 99 %"})
    lens = results["lens"].to_dataset()
    flat = float((lens["frequency"] < int(results.attrs["cut_frequency"])).mean())
    table = Table(
        title="Each run",
        frame=frame,
        caption=Caption(
            text="Scores of the stored nets; “step with 99 %” is the first logged one, empty where "
            "there is none.",
            estimand="heldout_accuracy: share of held-out prompts whose likeliest token is the "
            "answer; heldout_loss: mean cross-entropy in nats; embedding_low and lens_low: shares "
            f"of power in periods above {float(results.attrs['cut_period']):g}, of the number "
            "vectors and of what the logit lens sees after the last layer",
            n=f"{_heldout(results)} held-out prompts, {results.attrs['n_prompts']} for the lens; "
            f"{seeds_words(results)}",
            interval="none: each row is one run; the seeds show how far runs differ",
            null="scratch, as in the figure; of the shares of power "
            f"{words.percent(flat)}, those of a flat spectrum",
        ),
    )
    return Section("Accuracy", [figure, table])


def spectra_section(results: xr.DataTree) -> Section:
    """Spectra of number vectors, and of the logit lens."""
    lens = results["lens"].to_dataset()
    last = lens.isel(layer=-1, drop=True)
    frames = {
        "number vectors": _flat(results["embeddings"].to_dataset()[["share"]]),
        "logit lens": _flat(last[["share"]]),
    }
    n = int(results.attrs["n_numbers"])
    axis = {
        "xaxis": {"title": {"text": f"frequency k, in waves over {n} numbers"}},
        "yaxis": {"title": {"text": "share of power"}, "type": "log", "tickformat": "~%",
                  "dtick": 1, "exponentformat": "none"},
    }  # fmt: skip
    cut = float(results.attrs["cut_period"])
    spectra = Figure(
        title="Which waves the nets have",
        views={
            name: figures.arm_lines(
                frame.assign(share=frame["share"].clip(lower=_FLOOR)), "frequency", "share", **axis
            )
            for name, frame in frames.items()
        },
        caption=Caption(
            text=f"Period N/k, so that T = 10, 5, 2.5 and 2 are at k = {n / 10:g}, {n / 5:g}, "
            f"{n / 2.5:g} and {n / 2:g}. Low frequencies are those with periods above {cut:g}.",
            estimand="Share of the power over the numbers without the constant: of the embedding's "
            "rows, and of the logits of numbers that the residual after the last layer gives, mean "
            "over prompts",
            n=f"{n} numbers; {results.attrs['n_prompts']} held-out prompts; {seeds_words(results)}",
            interval="the seeds themselves",
            null=f"{words.percent(1 / lens.sizes['frequency'])} for each frequency of random rows",
        ),
        alt="Lines of shares by frequency for each kind of net.",
        data=pd.concat(frames, names=["of"]).reset_index(level="of"),
    )
    below = lens["frequency"] < int(results.attrs["cut_frequency"])
    low, flat = lens["share"].where(below, 0), float(below.mean())
    low_frame = _flat(low.sum("frequency").to_dataset(name="low"))
    names = ["emb" if layer == -1 else str(int(layer)) for layer in lens["layer"].values]
    by_layer = Figure(
        title="Low frequencies by layer",
        views={
            "low": figures.arm_lines(
                low_frame,
                "layer",
                "low",
                xaxis={"title": {"text": "after layer"}, "tickvals": lens["layer"].values.tolist(),
                       "ticktext": names, "zeroline": False},
                yaxis={"title": {"text": "share of power"}, **_SHARE},
            )
        },
        caption=Caption(
            text=f"How much of what the logit lens sees has periods above {cut:g}: the magnitude "
            "of the answer rather than its residues.",
            estimand="Share of the power of the logits of numbers, at the last token",
            n=f"{results.attrs['n_prompts']} held-out prompts; {seeds_words(results)}",
            interval="the seeds themselves",
            null=f"{words.percent(flat)} of a flat spectrum",
        ),
        alt="Lines of the share of low frequencies by layer.",
        data=low_frame,
    )  # fmt: skip
    return Section("Spectra", [spectra, by_layer])


def filters_section(results: xr.DataTree) -> Section:
    """Accuracy without low or high frequencies in what modules write."""
    filters = results["filters"].to_dataset()
    frame = filter_frame(filters)
    views = {}
    for modules in [name for name in _MODULES.values() if name in set(frame["modules"])]:
        own = frame[frame["modules"].isin(("nothing", modules))]
        order = list(dict.fromkeys(own["removed"]))
        axis = {"title": {"text": "accuracy"}, **_SHARE}
        views[modules] = figures.arm_bars(own, "removed", "accuracy", order, yaxis=axis)
    ranks = filters["rank"].groupby("part").max()
    named = {part: int(ranks.sel(part=part)) for part in ("low", "high") if part in ranks["part"]}
    figure = Figure(
        title="Without low or high frequencies",
        views=views,
        switch="From what is written by",
        caption=Caption(
            text="The waves are taken out of what attention, MLPs or both write in all layers, as "
            "the unembedding sees them; grey marks are seeds. Removed are "
            + words.listed([f"{rank} directions ({part})" for part, rank in named.items()])
            + f" of {results.attrs['d_model']}: low, periods above "
            f"{float(results.attrs['cut_period']):g}; high, periods {results.attrs['high_periods']}"
            ". A net that uses a band loses more than with as many random directions.",
            estimand="share of prompts that are right",
            n=f"{results.attrs['n_prompts']} held-out prompts; {seeds_words(results)}",
            interval="the seeds; bootstrap intervals over prompts are in results.nc",
            null="random: as many directions, drawn at random",
        ),
        alt="Bars of accuracy by what is removed, for each kind of net.",
        data=frame,
        width=420,
    )
    return Section("What the nets use", [figure])


def filter_frame(filters: xr.Dataset) -> pd.DataFrame:
    """One row for each arm, seed and condition: `accuracy` and `loss` without the waves that are
    `removed` from what `modules` write."""
    frame = filters["mean"].sel(measure=["accuracy", "loss"]).reset_coords(drop=True)
    frame = frame.assign_coords(condition=np.arange(frame.sizes["condition"]))
    table = frame.to_dataset("measure").to_dataframe().reset_index()
    place = table.pop("condition").to_numpy()
    modules, parts, projections = (
        filters[name].values.astype(str)[place] for name in ("modules", "part", "projection")
    )
    table.insert(2, "modules", [_MODULES.get(name, name) for name in modules])
    random = np.where(projections == "random", ", random", "")
    return table.assign(removed=np.char.add(parts, random))


def errors_section(results: xr.DataTree) -> Section:
    """How far wrong answers are off."""
    count = results["errors"].to_dataset()["count"]
    frame, n_wrong = distance_frame(count), int(count.sum())
    figure = Figure(
        title="How far wrong answers are off",
        views={
            "errors": figures.arm_bars(
                frame,
                "distance",
                "share",
                DISTANCES,
                xaxis={"title": {"text": "|predicted − answer|"}, "type": "category"},
                yaxis={"title": {"text": "share of wrong answers"}, **_SHARE},
            )
        },
        caption=Caption(
            text="Zhou et al. 2024 find errors of 1 or 2 in a net trained from scratch, and "
            "multiples of 10 in pre-trained ones. A net without wrong answers has no bars.",
            estimand="share of held-out prompts answered wrongly by a number that is off by this",
            n=f"{n_wrong:,} wrong answers",
            interval="the seeds themselves",
            null="answers at random: most are “other”, and 10 is about as frequent as 1 or 2",
        ),
        alt="Bars of shares of wrong answers by distance.",
        data=frame,
        width=420,
    )
    return Section("Errors", [figure])


def distance_frame(count: xr.DataArray) -> pd.DataFrame:
    """One row for each arm, seed and distance: the number of wrong answers, and their `share`."""
    size = np.abs(count["error"].values)
    place = np.select(
        [size == 1, size == 2, size <= 5, size <= 9, size == 10], [0, 1, 2, 3, 4], default=5
    )
    named = count.assign_coords(distance=("error", [DISTANCES[i] for i in place]))
    sums = named.groupby("distance").sum("error").reindex(distance=list(DISTANCES), fill_value=0)
    whole = sums.sum("distance")
    found = xr.Dataset({"count": sums, "share": (sums / whole).where(whole > 0)})
    return _flat(found)


def _heldout(results: xr.DataTree) -> str:
    return words.number(int(results["rescue"]["n_heldout"].min()))


def _frame(results: xr.DataTree, group: str) -> pd.DataFrame:
    return _flat(results[group].to_dataset())


def _flat(dataset: xr.Dataset) -> pd.DataFrame:
    dims = ["arm", "seed", *(str(dim) for dim in dataset.dims if dim not in ("arm", "seed"))]
    return dataset.to_dataframe(dim_order=dims).reset_index()
