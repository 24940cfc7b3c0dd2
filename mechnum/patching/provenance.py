"""Where a result comes from, as netCDF-safe attributes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from mechnum.models.model import Model
from mechnum.patching.metrics import WARNINGS, MetricName
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import TokenSequences, fingerprint

_PACKAGES = ("mechnum", "torch", "transformer-lens", "transformers", "numpy")


def attributes(model: Model, pairs: Pairs, metric: MetricName) -> dict[str, str | int | float]:
    """Model, prompts, metric and versions of a result, after a look at the wrapped model."""
    said = model_attributes(model) | {
        "task": pairs.task,
        "pairs_fingerprint": pairs.fingerprint,
        "n_pairs": len(pairs),
        "vary": pairs.vary,
        "seed": -1 if pairs.seed is None else pairs.seed,
        "metric": metric,
    }
    if metric in WARNINGS:
        said["warning"] = WARNINGS[metric]
    return said


def model_attributes(model: Model) -> dict[str, str | int | float]:
    """Model and versions of a result, after a look at the wrapped model."""
    model.check_current()
    return {
        "model": model.name,
        "family": model.spec.family,
        "model_fingerprint": model.fingerprint,
        "processing": model.decoder.weights.processing(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "logit_difference": model.verification.logit_difference,
        "versions": json.dumps(versions()),
    }


def prompt_attributes(
    model: Model, prompts: Sequence[TokenSequences]
) -> dict[str, str | int | float]:
    """Model, prompts and versions of a result that is not of pairs."""
    return model_attributes(model) | {
        "prompts_fingerprint": fingerprint(prompts),
        "n_prompts": sum(map(len, prompts)),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of what the numbers were computed with."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
