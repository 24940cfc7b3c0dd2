"""Sections about clock and pizza: the figures, circles by formula, and what disputes the names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table, Text
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section

_MEANINGS = {
    "gradient symmetricity": "cosine of a logit's gradients to both embeddings; 1 for a pizza",
    "irrelevance, right logit": "0 where a − b alone decides the logit, as in an ideal pizza; 1 "
    "where it does not matter, as in a clock",
    "irrelevance, largest wrong logit": "the same of the largest other logit, as in the published "
    "runs",
    "circularity of a": "1 where the first four components of the embedding are waves",
    "circularity of b": "the same of b's embedding, which is a's where they share tokens",
    "accuracy": "share of all pairs that are right",
}
_BY = {"fourier": "Fourier mode", "components": "pairs of principal components"}
_EXPLAINED = 0.5  # A circle accompanies another where its formula explains more than half.
FORMULAS = ("clock", "pizza", "accompanying")


def verdict_section(results: xr.DataTree) -> Section:
    """The word, and every figure that it is from."""
    attrs = results["verdict"].attrs
    found = Text(
        points=[
            ("Verdict", f"{attrs['verdict']}: {attrs['because']}."),
            ("How sure", _how_sure(results)),
            ("Caution", str(attrs["caution"])),
        ]
    )
    cosines, p = results["verdict"]["cosine"], int(attrs["p"])
    table = Table(
        title="Figures",
        frame=figures_frame(results),
        caption=Caption(
            text="Zhong et al. 2023, sections 4.1 to 4.3. No single figure decides: nets whose "
            "first step adds the embeddings are symmetric whatever they do next.",
            estimand="as the column “meaning” says of each",
            n=f"{cosines.sizes['triple']} triples (a, b, c), {attrs['triples']}, for the gradient "
            f"symmetricity; {results.attrs['n_prompts']:,} pairs for the others",
            interval=INTERVAL_WORDS.replace("pairs", "triples") + "; the others are exact, of all "
            "pairs of one net",
            null="gradient symmetricity 0 of gradients that point anywhere; irrelevance 1 where "
            f"a − b does not matter; circularity {words.number(_chance_circularity(p), 2)} of "
            f"vectors at random; accuracy {words.percent(1 / p)} of a guess",
        ),
    )
    return Section("What was found", [found, table])


def _how_sure(results: xr.DataTree) -> str:
    """The interval of the one figure that is from a sample, and where thresholds come from."""
    verdict = results["verdict"].to_dataset()
    ends = [float(verdict[f"symmetricity{end}"]) for end in ("", "_low", "_high")]
    return (
        f"symmetricity {words.interval(*ends, sign=False)} over "
        f"{verdict.sizes['triple']:,} triples, 0 for gradients that point anywhere; all else is "
        "exact, of all pairs. Thresholds lie between the paper's nets of either kind."
    )


def _chance_circularity(p: int) -> float:
    """Mean circularity of random directions over p numbers: their shares of the power at the m
    frequencies are like the lengths into which m − 1 random cuts part a line."""
    m = p // 2
    return float(np.sum(1 / np.arange(1, m + 1)) / m)


def figures_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each figure: its value, the ends of its interval if it has one, its meaning."""
    verdict = results["verdict"].to_dataset()
    irrelevance = verdict["irrelevance"]
    numbers = {
        "gradient symmetricity": verdict["symmetricity"],
        "irrelevance, right logit": irrelevance.sel(form="correct"),
        "irrelevance, largest wrong logit": irrelevance.sel(form="largest_wrong"),
        "circularity of a": verdict["circularity"].sel(table="a"),
        "circularity of b": verdict["circularity"].sel(table="b"),
        "accuracy": verdict["accuracy"],
    }
    frame = pd.DataFrame({"figure": list(numbers), "value": [float(x) for x in numbers.values()]})
    for end in ("low", "high"):
        frame[end] = [float(verdict[f"symmetricity_{end}"])] + [np.nan] * (len(frame) - 1)
    return frame.assign(meaning=[_MEANINGS[name] for name in numbers])


def circle_frame(isolated: xr.Dataset, by: str) -> pd.DataFrame:
    """One row for each circle: its frequency, its power, and what each formula explains, at which
    frequency."""
    frame = pd.DataFrame(
        {
            "circle": isolated["embedding_frequency"].values,
            "by": by,
            "power": isolated["power"].values,
        }
    )
    for formula in FORMULAS:
        frame[formula] = isolated["explained"].sel(formula=formula).values
    for formula in FORMULAS:
        frame[f"{formula} at k"] = isolated["best_frequency"].sel(formula=formula).values
    return frame


def accompanied(isolated: xr.Dataset) -> dict[int, int]:
    """Circle → the one that accompanies it: of twice its frequency, and best by that formula."""
    p = int(isolated.attrs["p"])
    frequency = [int(k) for k in isolated["embedding_frequency"].values]
    explained = isolated["explained"]
    alike = explained.sel(formula="accompanying")
    others = explained.drop_sel(formula="accompanying").max("formula")
    companion = ((alike > _EXPLAINED) & (alike > others)).values
    companions = {k for k, is_one in zip(frequency, companion, strict=True) if is_one}
    double = {k: min(2 * k % p, -2 * k % p) for k in frequency}
    return {k: other for k, other in double.items() if other in companions}


def circles_section(results: xr.DataTree) -> Section:
    """What the net computes where one circle alone is kept, by three formulas."""
    modes, components = results["verdict"].to_dataset(), results["components"].to_dataset()
    by_mode, by_pair = circle_frame(modes, "fourier"), circle_frame(components, "components")
    named = [f"{k} by {other}" for k, other in accompanied(modes).items()]
    with_companion = (
        f"Accompanied: {words.listed(named)}."
        if named
        else "No circle is accompanied by one of twice its frequency."
    )
    caption = Caption(
        text="The embeddings keep one circle, and the logits of all pairs are compared with a "
        "formula at the frequency that fits best. Clock: cos w(a+b−c). Pizza: "
        "|cos(w(a−b)/2)| (|cos(w(a+b−c)/2)| − |sin(w(a+b−c)/2)|). Accompanying: "
        "−cos w(a−b) · cos w(a+b−c), from a circle of twice the frequency, where a pizza is "
        f"blind. {with_companion}",
        estimand="1 − Var(z − q) of the z-scored logits z and formula q",
        n=f"{results.attrs['n_prompts']:,} pairs, all classes",
        interval="none: exact, of all pairs of one net",
        null="below 0 for a formula that has nothing to do with the logits; a clock's explains "
        "about 75 % of a pizza's logits, so the difference counts",
    )
    figure = Figure(
        title="Each circle alone",
        views={
            _BY["fourier"]: figures.formula_bars(by_mode, FORMULAS),
            _BY["components"]: figures.formula_bars(by_pair, FORMULAS),
        },
        switch="Circles by",
        caption=caption,
        alt=f"Bars of what each formula explains of each circle. {with_companion}",
        data=pd.concat([by_mode, by_pair], ignore_index=True),
        width=420,
    )
    table = Table(
        title="Circles by formula",
        frame=pd.concat([by_mode, by_pair], ignore_index=True).replace({"by": _BY}),
        caption=replace(
            caption,
            text="circle: the frequency that holds most of its power; power: its share of the "
            "embeddings'; at k: the frequency at which a formula explains most. Two circles of "
            "equal power share their components, which mixes them there and not by Fourier mode.",
        ),
    )
    return Section("Circles by formula", [figure, table])


def irrelevance_section(results: xr.DataTree) -> Section:
    """The right logit by sum and distance."""
    logit = results["irrelevance"]["logit"]
    value = float(results["verdict"]["irrelevance"].sel(form="correct"))
    figure = Figure(
        title="The right logit by sum and distance",
        views={
            "map": figures.square_map(
                logit - logit.mean(), ("a + b mod p", "a − b mod p"), "logits"
            )
        },
        caption=Caption(
            text="Each column has one a − b. In a pizza columns have one shade each, and are low "
            "where cos(w(a − b)/2) is near 0 for its circles; a clock's map has no columns. "
            f" Distance irrelevance: {words.number(value)}.",
            estimand="Logit of the right class about its mean; irrelevance: mean over columns of "
            "the standard deviation, over that of all",
            n=f"{results.attrs['n_prompts']:,} pairs",
            interval="none: exact, each cell is one pair",
            null="an irrelevance of 1: columns vary within as much as altogether",
        ),
        alt="Map of the right logit by a + b and a − b.",
        data=logit.to_dataframe().reset_index(),
        width=380,
        widest=620,
    )
    return Section("Distance irrelevance", [figure])


def dispute_section(results: xr.DataTree) -> Section | None:
    """Whether the first layer reads a and b alike, which later work finds in both."""
    alignment = reading.group(results, "alignment")
    if alignment is None:
        return None
    share, chance = float(alignment["aligned"]), float(alignment["aligned_by_chance"])
    axes = ("f·a mod p", "f·b mod p")
    known = int(alignment["torus_distance"].notnull().sum())
    blocks: list[Block] = [
        Text(
            [
                "Moisescu-Pareja et al. 2026 dispute that clock and pizza are two algorithms: in "
                "703 nets they find one first layer, whose neurons of one frequency place the "
                "pairs on a disc, since each reads a and b with the same phase. Gradients and "
                "irrelevance then differ by how later steps use it."
            ]
        ),
        Figure(
            title="Where each neuron is highest",
            views={
                "pairs": figures.square_map(
                    alignment["histogram"].astype(float), axes, "neurons", scale=False
                )
            },
            caption=Caption(
                text=f"Pairs are relabelled by each neuron's frequency f. {words.percent(share)} "
                "of the neurons are highest within 1/12 of a turn of the diagonal: they read a and "
                "b with one phase.",
                estimand="Pair with the largest pre-activation in the first layer",
                n=f"{known:,} neurons that vary",
                interval="none: all such neurons of one net, each over all pairs",
                null=f"{words.percent(chance)} within 1/12 of a turn, for independent phases",
            ),
            alt=f"Map of pairs; {words.percent(share)} of the neurons lie near the diagonal.",
            data=alignment[["best_frequency", "explained", "highest_a", "highest_b",
                            "torus_distance"]].to_dataframe().reset_index(),
            width=380,
            widest=620,
        ),
    ]  # fmt: skip
    shapes = reading.group(results, "cka")
    if shapes is not None and shapes.sizes["frequency"]:
        blocks.append(_shapes(shapes, int(results.attrs["n_prompts"])))
    return Section("What later work disputes", blocks)


def _shapes(shapes: xr.Dataset, n_pairs: int) -> Table:
    stacked = shapes["cka"].stack(row=("of", "frequency")).transpose("row", "shape")
    frame = stacked.to_pandas().dropna(how="all").reset_index()
    frame.columns.name = None
    return Table(
        title="Disc, torus or circle",
        frame=frame,
        caption=Caption(
            text="Ideal features, w = 2πk/p: disc cos wa + cos wb with sin wa + sin wb; torus all "
            "four alone; circle cos and sin of w(a + b). The paper finds discs in clocks and "
            "pizzas, a torus where embeddings are concatenated, and circles in logits. It adds "
            "persistent homology, which is not computed here.",
            estimand="Linear CKA over pairs of the first layer's neurons of a frequency, or of the "
            "logits of the classes that it explains best, with the ideal features",
            n=f"{n_pairs:,} pairs; of neurons and classes those that the frequency explains best",
            interval="none: exact, of all pairs of one net",
            null="0: features of other frequencies. A disc has 0.71 with the torus and 0 with the "
            "circle",
        ),
    )
