"""A made-up trace of the shape that real ones have: 4 layers, 4 heads, 100 pairs, numbers 0-99."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

N_LAYERS, N_HEADS, N_PAIRS = 4, 4, 100
PERIODS = (2.0, 5.0, 10.0, 100.0)
METHODS = ("full", "pca", "helix", "circle", "polynomial")
TOKENS = ("37", "+", "48", "=")


def trace(seed: int = 0) -> xr.DataTree:
    """A trace with every part."""
    rng = np.random.default_rng(seed)
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=_attributes()),
            "/prompts": _prompts(rng),
            "/errors": xr.Dataset(
                {"count": ("error", [1, 31, 2, 4, 19, 1])},
                coords={"error": [-20, -10, -1, 1, 10, 20]},
            ),
            "/effects/heads": _effects(rng, (N_LAYERS, N_HEADS)),
            "/effects/attn": _effects(rng, (N_LAYERS,)),
            "/effects/mlps": _effects(rng, (N_LAYERS,), size=2.0),
            "/helix/a": _site(rng, best=0),
            "/helix/b": _site(rng, best=0),
            "/helix/end": _site(rng, best=3),
            "/helix/planes": _planes(rng),
            "/attention": _attention(rng),
        }
    )


def _attributes() -> dict[str, object]:
    return {
        "model": "adder-gptj",
        "family": "gptj",
        "task": "addition",
        "template": "{a}+{b}=",
        "metric": "logit_diff",
        "norm": "exact",
        "direction": "denoise",
        "seed": 0,
        "accuracy": 0.9942,
        "n_prompts": 10_000,
        "dropped": json.dumps({"equal answers": 3, "wrong answer": 58}),
        "versions": json.dumps({"mechnum": "0.1.0", "torch": "2.13.0"}),
        "verification": 3.8e-6,
    }


def _prompts(rng: np.random.Generator) -> xr.Dataset:
    a, b = (side.ravel() for side in np.meshgrid(np.arange(100), np.arange(100), indexing="ij"))
    predicted = (a + b).astype(float)
    wrong = rng.choice(a.size, 58, replace=False)
    predicted[wrong] += rng.choice([-10, 10, 1, -1], 58, p=[0.55, 0.32, 0.08, 0.05])
    predicted[wrong[:2]] = np.nan
    return xr.Dataset(
        {
            "a": ("prompt", a),
            "b": ("prompt", b),
            "answer": ("prompt", a + b),
            "predicted": ("prompt", predicted),
            "correct": ("prompt", predicted == a + b),
            "tokens": ("position", [37, 200, 48, 201]),
        },
        coords={"token": ("position", list(TOKENS))},
        attrs={"positions": json.dumps({"a": 0, "op": 1, "b": 2, "end": 3})},
    )


def _effects(rng: np.random.Generator, shape: tuple[int, ...], size: float = 1.0) -> xr.Dataset:
    centre = size * rng.gamma(0.5, 1.0, shape) * np.linspace(0.3, 1.5, shape[0]).reshape(
        -1, *[1] * (len(shape) - 1)
    )  # fmt: skip
    total = centre + rng.normal(0, 0.8, (N_PAIRS, *shape))
    direct = 0.4 * centre + rng.normal(0, 0.4, (N_PAIRS, *shape))
    dims = ("pair", "layer", "head")[: 1 + len(shape)]
    data = {"total": total, "direct": direct, "indirect": total - direct}
    return xr.Dataset(
        {name: (dims, value.astype(np.float32)) for name, value in data.items()},
        coords={dim: np.arange(size) for dim, size in zip(dims, total.shape, strict=True)},
        attrs={"metric": "logit_diff", "position": "end", "norm": "exact", "direction": "denoise"},
    )


def _site(rng: np.random.Generator, best: int) -> xr.Dataset:
    level = dict(zip(METHODS, (8.2, 6.4, 7.1, 6.6, 3.1), strict=True))
    fall = np.exp(-0.5 * np.abs(np.arange(N_LAYERS) - best))
    score = np.stack([level[method] * fall for method in METHODS], axis=1)
    score = score[..., None] + rng.normal(0, 2.0, (N_LAYERS, len(METHODS), N_PAIRS))
    r2 = np.stack([level[method] / 8.2 * fall - 0.05 for method in METHODS], axis=1)
    r2[:, 0] = np.nan
    r2[-1, -1] = -3.0
    return xr.Dataset(
        {
            "score": (("layer", "method", "pair"), score.astype(np.float32)),
            "r2": (("layer", "method"), r2),
        },
        coords={
            "layer": np.arange(N_LAYERS), "method": list(METHODS), "pair": np.arange(N_PAIRS)
        },
        attrs={"periods": list(PERIODS), "features": "a", "components": 100, "folds": "5"},
    )  # fmt: skip


def _planes(rng: np.random.Generator) -> xr.Dataset:
    number = np.arange(100)
    angle = 2 * np.pi * number[:, None] / np.array(PERIODS)
    coordinates = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    coordinates += rng.normal(0, 0.06, coordinates.shape)
    coordinates[:, 0, 1] = np.nan
    return xr.Dataset(
        {
            "coordinates": (("number", "period", "axis"), coordinates),
            "linear": ("number", number + rng.normal(0, 2.0, 100)),
        },
        coords={"number": number, "period": list(PERIODS), "axis": ["cos", "sin"]},
        attrs={"site": "b", "layer": 0, "r2": 0.83},
    )


def _attention(rng: np.random.Generator) -> xr.Dataset:
    size = len(TOKENS)
    logits = rng.normal(0, 2, (N_LAYERS, N_HEADS, size, size))
    weights = np.exp(logits) * np.tril(np.ones((size, size)))
    pattern = weights / weights.sum(-1, keepdims=True)
    return xr.Dataset(
        {"pattern": (("layer", "head", "query", "key"), pattern.astype(np.float32))},
        coords={"layer": np.arange(N_LAYERS), "head": np.arange(N_HEADS)},
    )
