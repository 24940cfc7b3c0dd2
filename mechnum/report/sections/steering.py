"""Sections on steering: the best layer and strength, the maps, and what the probes read."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, words
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.intervals import COUNTED
from mechnum.report.page import Section
from mechnum.report.steering_frames import (
    KINDS,
    RANDOM,
    SHARES,
    best_frame,
    reading_frame,
    steering_frame,
    vector_frame,
)

ORACLE = (
    "Vectors of the right answer use what the model was to find out. What they repair shows that "
    "an answer that is written there is read, and is no way to repair a model; only “decoded” does "
    "without the right answer."
)
_MIXED = "h becomes (1 \N{MINUS SIGN} α)·h + α·vector at the last position after one layer"
_INTERVAL = (
    "95 % Wilson interval that counts each question once; of random directions the least and the "
    "largest draw"
)


def best_section(results: xr.DataTree) -> Section:
    """The layer and strength of each kind of vector, scored on other questions."""
    best = results["best"].to_dataset()
    rows = []
    for row in best_frame(results).to_dict("records"):
        shown = {
            name: words.interval(row[name], row[f"{name}_low"], row[f"{name}_high"], sign=False)
            for name in (*SHARES, "accuracy", "random")
        }
        rows.append(
            {
                "steered towards": row["vector"],
                "right answer used": "no" if row["vector"] == "decoded" else "yes",
                "layer": row["layer"],
                "α": row["alpha"],
                "repaired": shown["repaired"],
                "repaired, random": shown["random"],
                "p": row["p"],
                "broken": shown["broken"],
                "broken, random": row["random_broken"],
                "accuracy": shown["accuracy"],
            }
        )
    wrong, right = int(best["n_wrong"]), int(best["n_right"])
    table = Table(
        title="Best layer and strength",
        frame=pd.DataFrame(rows),
        caption=Caption(
            text="Chosen on one half of the questions, as the layer and strength with the most "
            "right answers, and scored on the other half, where the model itself has an accuracy "
            f"of {words.percent(float(best['accuracy_before']))}. {ORACLE}",
            estimand=f"{_MIXED}. Repaired: share of wrong answers that become right; broken: share "
            "of right ones that become wrong",
            n=f"{wrong:,} wrong prompts of {int(best['wrong_questions']):,} questions and "
            f"{right:,} right ones of {int(best['right_questions']):,}",
            interval="95 % Wilson interval that counts each question once; of random directions "
            "the central 95 % of draws",
            null=f"{best.sizes['draw']} draws of random directions, each as long as the vector, at "
            "the same layer and strength; p: how likely one repairs as many or more",
        ),
    )
    return Section("The best layer and strength", [table])


def maps_section(results: xr.DataTree) -> Section:
    """Repaired and broken by layer and strength, beside the controls."""
    frame = steering_frame(results)
    found = results["steering"].to_dataset()
    wrong = int((~found["right_before"]).sum())
    kinds = list(dict.fromkeys(frame["vector"]))
    meanings = "; ".join(f"{name}: {KINDS[name]}" for name in kinds if name in KINDS)
    figure = Figure(
        title="Answers repaired and broken",
        views={share: figures.steering_maps(frame, share) for share in SHARES},
        caption=Caption(
            text=f"One panel for each vector. {words.sentence(meanings)}.",
            estimand=f"{_MIXED}, and all that comes after it is recomputed. Repaired: share of "
            "wrong answers that become right; broken: share of right ones that become wrong",
            n=f"{wrong:,} wrong and {found.sizes['prompt'] - wrong:,} right prompts, none of them "
            "used for the vectors",
            interval=_INTERVAL,
            null=f"“{RANDOM}” ({found.sizes['draw']} draws), “other value” and “mean state”",
        ),
        alt="Maps of layer by strength, a panel for each kind of vector.",
        data=frame,
        width=760,
    )
    return Section("By layer and strength", [figure])


def probes_section(results: xr.DataTree) -> Section:
    """What the probes read in the states that are steered, and the vectors that they give."""
    frame = reading_frame(results)
    found = results["steering"].to_dataset()
    wrong = int((~found["right_before"]).sum())
    shares = found["answer"].to_series().value_counts(normalize=True)
    common = float(shares.max())
    lines = Figure(
        title="What the probe reads",
        views={"reading": figures.reading_lines(frame, common)},
        caption=Caption(
            text="Where the model answers wrongly and the probe reads the right answer, it was "
            "there to be read. A probe that was trained on few prompts reads less than is there.",
            estimand="Share of prompts in whose last state the probe reads the right answer",
            n=f"{wrong:,} wrong and {found.sizes['prompt'] - wrong:,} right prompts, none of them "
            "used to train the probe",
            interval=COUNTED,
            null=f"{words.percent(common)}: the commonest of {len(shares)} answers",
        ),
        alt="Lines of the share read by layer.",
        data=frame,
        width=420,
        widest=720,
    )
    table = Table(
        title="Vectors",
        frame=vector_frame(results),
        caption=Caption(
            text="How many vectors the probe itself reads as their number: where it reads others, "
            "what they repair is no test of the probe. How far they are from the mean state, and "
            "how much their direction from it is that of the class mean, as means over numbers.",
            estimand="read: share of the vectors that the probe reads as their number; length: "
            "distance from the mean state; cosine of the directions from there, of this vector "
            "and the class mean",
            n=f"{int(results.attrs['n_train']):,} prompts that train the probe; a vector for each "
            "of their answers",
            interval="none: means over all these vectors, of one probe for each layer",
            null="read 0: the probe does not know its own vectors; cosine 0: a direction that has "
            "nothing to do with the class mean",
        ),
    )
    return Section("Probes and vectors", [lines, table])
