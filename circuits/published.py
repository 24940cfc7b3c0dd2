"""Figures that papers published, beside what was measured here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from mechnum.models import Model

# Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5: GPT-J, addition of 0 to 99, 100 pairs.
_HEADS_FOR = {"0.5": 8, "0.7": 13, "0.8": 17, "0.9": 31}
_MLPS_FOR = {"0.7": 3, "0.8": 4, "0.9": 6, "0.95": 11, "0.99": 15}
_CLASSES = {"a,b": 11, "a+b": 5, "mixed": 4}
_SUMS = {"attn": (5.40, 1.20), "mlps": (20.21, 8.20)}

# The same paper, section 4: largest score over layers of the full state, PCA, helix, circle and
# polynomial at the operand.
_LARGEST_SCORES = {
    "addition": (8.34, 6.13, 7.21, 6.83, 3.09),
    "a-23": (7.45, 6.16, 7.05, 6.52, 2.93),
    "a//5": (5.48, 5.24, 4.55, 4.25, 4.55),
    "1.5a": (7.86, 6.65, 5.16, 4.85, 4.84),
    "a_mod_2": (0.98, 1.00, 1.11, 1.12, 0.88),
    "x-a=0": (6.70, 4.77, 4.56, 4.34, 2.98),
}
# Zhou et al. 2024 (arXiv 2406.03445), table 1: a GPT-2-XL that was fine-tuned to add.
_ACCURACY_WITHOUT = {
    ("both", "low removed"): 0.0594,
    ("both", "high removed"): 0.2708,
    ("attn", "low removed"): 0.9912,
    ("attn", "high removed"): 0.7836,
    ("mlp", "low removed"): 0.3589,
    ("mlp", "high removed"): 0.9810,
}

# Nanda et al. 2023 (arXiv 2301.05217), section 4: one layer, addition modulo 113, the main run.
_GROKKED = {
    "key frequencies": 5,
    "neurons explained to 85 % by one frequency": 0.846,
    "share of the logits' variance in cos w(a + b − c)": 0.95,
    "cross-entropy, nats": 2.4e-7,
    "cross-entropy of cos w(a + b − c) alone": 4.7e-8,
    "cross-entropy of the key part alone (restricted)": 5.54e-8,
    "rank of W_L": 10,
    "W_L outside the key frequencies, share of its length": 0.0055,
    "variance along W_L's directions, least": 0.932,
    "variance along W_L's directions, most": 0.982,
    "attention to a that is linear in waves, least": 0.979,
    "attention to a that is linear in waves, most": 0.991,
}
# Zhong et al. 2023 (arXiv 2306.17844) and their checkpoints: one layer, addition modulo 59, by
# attention rate. Distance irrelevance of the right logit, as the paper, and of the largest wrong
# one, as its runs; each circle by its formula.
_RATES = {
    0.0: (
        "Model A",
        (0.9937, 0.1717, 0.2218),
        {
            "pizza": {0: 0.9831, 1: 0.9831, 2: 0.9841},
            "clock": {0: 0.7541, 1: 0.7562, 2: 0.7538},
            "accompanying": {3: 0.9756, 4: 0.9723, 5: 0.9769},
        },
    ),
    1.0: ("Model B", (0.3336, 0.8483, 0.8849), {}),
}
# Štefánik et al. 2026 (arXiv 2510.26285), steering: Llama-3.2-3B, share of wrong answers repaired
# with vectors of the right answers.
_REPAIRED = {"multiplication": 0.30, "division": 0.42}
# Štefánik et al. 2026 (arXiv 2510.26285): correlations of the similarities of all pairs of 0 to
# 999 (Pearson or Spearman is not said), lowest and highest of the models named.
_SIMILARITIES = {
    ("cosine", "within OLMo-2"): (0.83, 0.91),
    ("cosine", "OLMo-2 and Llama-3"): (0.69, 0.88),
    ("cosine", "within Llama-3"): (0.75, 0.91),
    ("cosine", "Phi-4 and others"): (0.59, 0.69),
    ("cosine", "Phi-4-mini and others"): (0.58, 0.76),
    ("cosine", "Phi-4 and Phi-4-mini"): (0.45, 0.45),
    ("cosine, random tokens", "all pairs but the next"): (-0.43, 0.56),
    ("cosine, random tokens", "Llama-3.2-1B and 3B"): (0.906, 0.906),
    ("dot", "OLMo-2 and Llama-3"): (0.72, 0.95),
    ("dot", "Phi-4 and others"): (0.44, 0.66),
    ("dot", "Phi-4-mini and others"): (0.21, 0.37),
    ("Euclid", "all pairs without Phi-4"): (0.10, 0.97),
    ("Euclid", "lowest with Phi-4"): (-0.51, -0.51),
}
_OTHER_SEED = (
    "Both nets have the same shapes. Unless they are the same checkpoint, their seeds and training "
    "differ, and keys, losses and ranks with these."
)


def clock_figures(measured: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """What was published of GPT-J's clock, beside the same of this model.

    The two are other models, prompts and metrics, so that agreement is of the shape at most.

    Args:
        measured: groups of `mechnum.trace_clock` by path, with their attributes.

    Returns:
        `published` and `measured` over quantity; NaN where there is no such number.
    """
    rows: list[tuple[str, float | int, float]] = []
    for kind, levels in (("heads", _HEADS_FOR), ("mlps", _MLPS_FOR)):
        curve = measured.get(f"/clock/curves/{kind}")
        reached = {} if curve is None else json.loads(curve.attrs["k_for"])
        name = "heads" if kind == "heads" else "MLPs"
        of = "attention" if kind == "heads" else "MLP"
        rows += [
            (f"{name} for {float(level):.0%} of the {of} effect", k, _number(reached.get(level)))
            for level, k in levels.items()
        ]
    heads = measured["/clock/heads"]
    rows += [
        (f"heads of class {name}", count, float((heads["class"].values == name).sum()))
        for name, count in _CLASSES.items()
    ]
    validation = measured["/clock/validation"]
    shares = validation["share"].to_series()
    mixed = f"m={int(heads['class'].isin(['mixed']).sum())}"
    rows += [
        ("share of the attention effect by classes, none mixed", 0.71, shares["m=0"]),
        ("share of the attention effect by classes, mixed as above", 0.79, shares[mixed]),
        ("share of the attention effect by the heads' true outputs", 0.834, shares["true"]),
    ]
    sums = measured["/clock/sums"].mean("pair")
    for kind, (total, direct) in _SUMS.items():
        there = kind in sums["kind"].values
        for name, value in (("total", total), ("direct", direct)):
            own = float(sums[name].sel(kind=kind)) if there else np.nan
            what = {"attn": "attention", "mlps": "MLPs"}[kind]
            rows.append((f"{name} effect of {what}, summed over layers", value, own))
    return _table(
        rows,
        of="GPT-J",
        source="Kantamneni & Tegmark 2025, section 5, on the raw logit of the answer",
        measure="on the metric of this page",
    )


def helix_figures(scores: xr.Dataset, task: str) -> xr.Dataset | None:
    """Largest causal scores over layers as shares of the full state's, beside those of GPT-J.

    Shares, since the scores themselves are in logits of another model.

    Args:
        scores: of `mechnum.helix.causal_scores`, with the method "full".
        task: name of the task.

    Returns:
        As `clock_figures`; None for tasks without published figures.
    """
    if task not in _LARGEST_SCORES:
        return None
    largest = scores["score"].mean("pair").max("layer").to_series()
    full, *rivals = _LARGEST_SCORES[task]
    rows = [
        (
            f"{method} / full state, largest over layers",
            score / full,
            largest[method] / largest["full"],
        )
        for method, score in zip(("pca", "helix", "circle", "polynomial"), rivals, strict=True)
        if method in largest
    ]
    return _table(
        rows,
        of="GPT-J",
        source="Kantamneni & Tegmark 2025, section 4, at the operand a, on the raw logit of the "
        "answer, in sample",
        measure="on the metric of this page, each pair by fits that have not seen its numbers "
        "unless the settings say otherwise",
    )


def filter_figures(table: xr.Dataset, d_model: int, task: str) -> xr.Dataset | None:
    """Accuracy without low or high components, beside that of a fine-tuned GPT-2-XL.

    Args:
        table: of `mechnum.fourier.filter_table`.
        d_model: conditions that remove all of these directions measure nothing.
        task: name of the task.

    Returns:
        As `clock_figures`; None for other tasks than addition and where neither was removed.
    """
    if task != "addition":
        return None
    # Random projections are the control.
    accuracy = table["mean"].sel(measure="accuracy")
    accuracy = accuracy[
        ((accuracy["projection"] == "filter") & (accuracy["rank"] < d_model)).values
    ]
    rows, cuts = [], {}
    for modules, band, share in zip(
        accuracy["modules"].values, accuracy["band"].values, accuracy.values, strict=True
    ):
        removed = str(band).split(",")[0]
        place = (str(modules), removed)
        if place in _ACCURACY_WITHOUT:
            what = {"both": "attention and MLPs", "attn": "attention", "mlp": "MLPs"}[place[0]]
            rows.append((f"accuracy, {removed}, {what}", _ACCURACY_WITHOUT[place], float(share)))
            cuts[removed] = str(band).removeprefix(f"{removed}, ")
    if not rows:
        return None
    return _table(
        rows,
        of="GPT-2-XL, fine-tuned",
        source="Zhou et al. 2024, table 1: numbers 0 to 260, cut at component 50 of 520",
        measure="share of the prompts of this page that are answered correctly, cut "
        + " and ".join(cuts.values()),
    )


def grokking_figures(model: Model, progress: xr.Dataset) -> xr.Dataset | None:
    """What Nanda et al. measured in their main run, beside the same of a net of its configuration.

    Args:
        progress: of `mechnum.grokking.progress_measures`.

    Returns:
        As `clock_figures`; None for nets of other configurations.
    """
    if progress.attrs["task"] != "modular_addition:113" or not _is_one_layer(model, n_ctx=3):
        return None
    test = progress.sel(part="test" if "test" in progress["part"] else "all")
    directions, attention = progress["direction_explained"], progress["attention_explained"]
    own = (
        progress.sizes["key"],
        progress["explained_neurons"],
        progress["cosine_share"],
        test["loss"],
        progress["cosine_loss"],
        test["restricted_loss"],
        progress["readout_rank"],
        progress["readout_residual"],
        directions.min(),
        directions.max(),
        attention.min(),
        attention.max(),
    )
    return _table(
        [(name, value, float(x)) for (name, value), x in zip(_GROKKED.items(), own, strict=True)],
        of="the main run of Nanda et al. 2023",
        source="Nanda et al. 2023, section 4, losses on test pairs",
        measure=f"losses on {'test' if 'test' in progress['part'] else 'all'} pairs",
        comparison=_OTHER_SEED,
    )


def clock_pizza_figures(
    model: Model, verdict: xr.Dataset, components: xr.Dataset
) -> xr.Dataset | None:
    """What Zhong et al. published of their net of this attention rate, beside the same of this one.

    Args:
        verdict: of `mechnum.grokking.clock_or_pizza`.
        components: of `isolate_circles` by principal components.

    Returns:
        As `clock_figures`; None for nets of other configurations.
    """
    known = _RATES.get(model.spec.attention_rate)
    if known is None or verdict.attrs.get("p") != 59 or not _is_one_layer(model, n_ctx=2):
        return None
    of, figures, formulas = known
    names = (
        "gradient symmetricity",
        "distance irrelevance, right logit",
        "distance irrelevance, largest wrong logit",
    )
    own = (verdict["symmetricity"], *verdict["irrelevance"].values)
    rows = [(name, x, float(y)) for name, x, y in zip(names, figures, own, strict=True)]
    rows += [
        (
            f"circle {circle + 1}, explained by the {formula} formula",
            share,
            float(components["explained"].sel(formula=formula, circle=circle)),
        )
        for formula, shares in formulas.items()
        for circle, share in shares.items()
        if circle in components["circle"]
    ]
    return _table(
        rows,
        of=f"{of} of Zhong et al. 2023",
        source="Zhong et al. 2023, sections 3 and 4, circles by pairs of principal components; "
        "the largest wrong logit as in the runs that they published",
        measure="with the published triples"
        if verdict.attrs["triples"] == "published"
        else f"with triples of {verdict.attrs['triples']}",
        comparison=_OTHER_SEED,
    )


def steering_figures() -> xr.Dataset:
    """What steering towards the right answer repaired in the paper, of another model and tasks.

    Returns:
        `repaired` over task; attributes `of` and `source`.
    """
    return xr.Dataset(
        {"repaired": ("task", list(_REPAIRED.values()))},
        {"task": list(_REPAIRED)},
        {"of": "Llama-3.2-3B", "source": "Štefánik et al. 2026 (arXiv 2510.26285)"},
    )


def similarity_figures() -> xr.Dataset:
    """Published similarities of the number embeddings of language models.

    Returns:
        `lowest` and `highest` over quantity, with the coordinates `similarity` and `models`.
    """
    (similarity, models), (lowest, highest) = (
        zip(*columns, strict=True) for columns in (_SIMILARITIES, _SIMILARITIES.values())
    )
    return xr.Dataset(
        {"lowest": ("quantity", list(lowest)), "highest": ("quantity", list(highest))},
        {"similarity": ("quantity", list(similarity)), "models": ("quantity", list(models))},
        {
            "source": "Štefánik et al. 2026: input embeddings of 0 to 999, whether by Pearson or "
            "Spearman is not said"
        },
    )


def _is_one_layer(model: Model, n_ctx: int) -> bool:
    """Whether a net has the shapes that both papers use, without norms."""
    spec = model.spec
    shapes = (spec.n_layers, spec.n_heads, spec.d_model, spec.d_head, spec.d_mlp, spec.n_ctx)
    return shapes == (1, 4, 128, 32, 512, n_ctx) and spec.norm is None and spec.activation == "relu"


def _table(
    rows: Sequence[tuple[str, float | int, float]],
    of: str,
    source: str,
    measure: str,
    comparison: str | None = None,
) -> xr.Dataset:
    names, published, own = zip(*rows, strict=True)
    return xr.Dataset(
        {"published": ("quantity", list(published)), "measured": ("quantity", list(own))},
        {"quantity": list(names)},
        {"of": of, "source": source, "measure": measure}
        | ({} if comparison is None else {"comparison": comparison}),
    )


def _number(k: int | None) -> float:
    return np.nan if k is None else float(k)
