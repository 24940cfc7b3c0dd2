"""The first look at how a model adds: which parts matter, and how numbers look inside it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

from mechnum.errors import InvalidInput
from mechnum.fourier.periods import default_periods
from mechnum.helix import Helix, causal_scores, helix_planes
from mechnum.models import Model
from mechnum.patching import effects
from mechnum.patching.provenance import versions
from mechnum.tasks import (
    Accuracy,
    Pairs,
    Prompts,
    Task,
    numbers_of,
    parse,
    sample_prompts,
    states_of,
)
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.examples import bos_policy, example_pair, token_texts
from mechnum.tasks.task import Operand


def trace(
    model: Model,
    task: Task | None = None,
    n_pairs: int = 100,
    periods: Sequence[float] | None = None,
    seed: int = 0,
    accuracy: Accuracy | None = None,
) -> xr.DataTree:
    """Measure how `model` does `task`, with the tools of Kantamneni & Tegmark 2025 (sections 4-5).

    Accuracy and errors; total and direct effects of heads, attention layers and MLPs at the last
    token; causal scores of the helix and its rivals at a, b and the last token (there in the
    answer); the helix in its planes; the attention pattern of one prompt. Fits at the operands use
    prompts whatever the model answers, those at the last token prompts that it answers correctly;
    a place with too few numbers for a fit, or a modular net without periods, has none, and the
    attribute `left_out` says why.

    Args:
        task: by default the one that the model was trained on, else addition of 0 to 99.
        n_pairs: pairs at most; fewer where the model answers too few prompts correctly.
        periods: of the helix; by default those of 2, 5, 10 and 100 that the range of numbers can
            tell apart, and for modular addition the strongest frequencies of the embedding.
        accuracy: of the model on the task, where it is known.

    Returns:
        The tree that `mechnum.report.reading` describes.

    Raises:
        MechnumError: where the model cannot read or do the task.
    """
    task = task or parse(model.default_task or "addition")
    accuracy = accuracy or task.accuracy(model)
    prompts = task.prompts(model)
    both: tuple[Operand, Operand] = ("a", "b")
    operands: list[Operand] = [name for name in both if accuracy.variables.get(name) is not None]
    varied: list[Operand] = ["any", *operands]
    pairs = {
        vary: task.pairs_at_most(model, n_pairs, vary, seed, accuracy=accuracy) for vary in varied
    }
    example, _ = example_pair(pairs["any"])
    parts = {
        "/": xr.Dataset(attrs=_attributes(model, task, accuracy, pairs["any"], example, seed)),
        "/prompts": _prompts(model, example, accuracy),
        "/errors": _errors(accuracy),
        "/effects/heads": effects(model, pairs["any"], "heads"),
        "/effects/attn": effects(model, pairs["any"], "attn"),
    }
    if model.spec.d_mlp:
        parts["/effects/mlps"] = effects(model, pairs["any"], "mlps")
    fitted_on = sample_prompts(prompts, seed=seed)
    answered = sample_prompts(prompts, seed=seed, accuracy=accuracy)
    left_out = {}
    sites = [(name, name, fitted_on) for name in operands] + [("end", "any", answered)]
    for site, vary, sample in sites:
        try:
            periods = tuple(periods or default_periods(model, task, accuracy.variables["a"]))
            parts[f"/helix/{site}"] = causal_scores(
                model, pairs[vary], sample, site, periods=periods, seed=seed
            )
        except InvalidInput as reason:
            left_out[f"helix at {site}"] = str(reason)
    if periods and "/helix/a" in parts:
        helix = Helix(periods, linear=not isinstance(task, ModularAddition))
        parts["/helix/planes"] = _planes(model, fitted_on, parts["/helix/a"], helix)
    parts["/attention"] = _attention(model, example)
    if left_out:
        parts["/"].attrs["left_out"] = json.dumps(left_out)
    return xr.DataTree.from_dict(parts)


def _attributes(
    model: Model, task: Task, accuracy: Accuracy, pairs: Pairs, example: Prompts, seed: int
) -> dict[str, str | int | float]:
    return {
        "model": model.name,
        "family": model.spec.family,
        "task": task.name,
        "template": task.form(model),
        "bos": bos_policy(model, example),
        "metric": "logit_diff",
        "norm": "exact",
        "direction": "denoise",
        "seed": seed,
        "accuracy": accuracy.share,
        "n_prompts": len(accuracy),
        "dropped": json.dumps(dict(pairs.dropped)),
        "processing": model.decoder.weights.processing(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "model_fingerprint": model.fingerprint,
        "verification": model.verification.logit_difference,
        "versions": json.dumps(versions()),
    }


def _prompts(model: Model, example: Prompts, accuracy: Accuracy) -> xr.Dataset:
    """Every prompt's numbers, and the tokens of one prompt."""
    ids = example.tokens[0].tolist()
    columns = {
        **{name: values.numpy() for name, values in accuracy.variables.items()},
        "predicted": accuracy.predicted_numbers.numpy(),
        "correct": accuracy.correct.numpy(),
    }
    return xr.Dataset(
        {
            **{name: ("prompt", values) for name, values in columns.items()},
            "tokens": ("position", ids),
        },
        coords={"token": ("position", token_texts(model, ids))},
        attrs={
            "positions": json.dumps(
                {name: int(places[0]) for name, places in example.positions.items()}
            ),
            "text": example.texts[0],
        },
    )


def _errors(accuracy: Accuracy) -> xr.Dataset:
    counts = accuracy.error_counts()
    return xr.Dataset(
        {"count": ("error", np.array(list(counts.values()), dtype=np.int64))},
        coords={"error": np.array(list(counts), dtype=np.int64)},
    )


def _planes(
    model: Model, prompts: Sequence[Prompts], scores: xr.Dataset, helix: Helix
) -> xr.Dataset:
    """The helix of operand a in its planes, at the layer where it explains the states best."""
    r2 = scores["r2"].sel({"method": "helix"}).values
    layer = int(scores["layer"].values[np.nanargmax(r2)])
    numbers, states = numbers_of(prompts, ["a"]), states_of(model, prompts, "a")[layer + 1]
    planes = helix_planes(helix.fit(numbers, states), numbers, states)
    if not helix.linear:
        planes = planes.drop_vars(["linear", "fitted_linear"])
    return planes.assign_attrs(site="a", layer=layer)


def _attention(model: Model, prompts: Prompts) -> xr.Dataset:
    """The pattern of every head on one prompt."""
    pattern = model.run(prompts.tokens[:1], keep=("pattern",)).stacked("pattern")[:, 0]
    return xr.Dataset(
        {"pattern": (("layer", "head", "query", "key"), pattern.float().cpu().numpy())},
        coords={"token": ("key", token_texts(model, prompts.tokens[0].tolist()))},
    )
