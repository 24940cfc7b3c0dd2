"""Do lenses read a number where it stands? The baselines beside which probes are held.

A lens says what the model would answer were a state the last one: of a state at a number, what
comes next, which need not be the number. Štefánik et al. 2026 (arXiv 2510.26285) say that lenses
underestimate what is known of numbers; here both read the same states.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from torch import Tensor

from mechnum.errors import InvalidInput
from mechnum.intervals import CONFIDENCE, RESAMPLES
from mechnum.models.exact import exact
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.probes.accuracy import accuracy_by_value
from mechnum.probes.ridge import ridge_by_value
from mechnum.probes.tables import Label, StateTable, hold_out, layer_table, layer_tables
from mechnum.progress import track

LENSES = ("logit", "tuned")
_STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def lens_accuracy(
    model: Model,
    collected: xr.Dataset,
    value_share: float = 0.2,
    template_share: float = 0.25,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """How often lenses give most to the number's own token, at the number.

    "logit" is the logit lens (nostalgebraist 2020): final norm and unembedding. "tuned" goes
    through an affine map before these, as the tuned lens (Belrose et al. 2023); the map is the
    ridge regression from a layer's states to the last residual at the same places, in closed form
    on the training rows of these very texts, and not by gradients on a divergence of logits. Its
    strength is chosen on held-out numbers.

    Args:
        collected: of `collect_states`, with the last layer among its layers.
        value_share, template_share, seed: what is held out, as in `probe_transfer`, so that
            probes and lenses read the same test rows.

    Returns:
        Over (lens, layer): `accuracy`, the share of test rows where the number's token (its piece,
        where it has several) has the largest logit among the tokens of all numbers, with `low` and
        `high` by numbers; `anywhere`, the share where it is the largest of the whole vocabulary;
        `agreement`, the share where the lens and the model have the same likeliest token. `chance`
        is the share of the commonest token; `n_tokens`, how many compete.

    Raises:
        InvalidInput: the last layer was not collected, tokens that the model cannot answer with,
            and as `hold_out`.
    """
    last = model.spec.n_layers - 1
    layers = collected["layer"].values.tolist()
    if last not in layers:
        raise InvalidInput(
            f"lenses need the states of layer {last}, the last: collect them as well"
        )
    if collected.sizes["dimension"] != model.spec.d_model:
        raise InvalidInput(f"these are no states of {model.name}: give those of the same model")
    tokens = collected["token"].values
    if tokens.max() >= model.spec.d_vocab_out:
        raise InvalidInput(f"{model.name} cannot answer token {tokens.max()}: there is no lens")
    tables = layer_tables(collected)
    train, test = _rows(tables, value_share, template_share, seed)
    competing = np.unique(tokens)
    values, wanted = collected["value"].values[test], tokens[test]
    final = layer_table(collected, last).states
    model_says = np.concatenate(
        [logits.argmax(dim=1).numpy() for logits in _logits(model, final[test])]
    )
    found: dict[str, list[float]] = {
        name: [] for name in ("accuracy", "low", "high", "anywhere", "agreement")
    }
    todo = [(lens, layer) for lens in LENSES for layer in layers]
    for lens, layer in track(todo, "reading through lenses"):
        table = tables[layer]
        states = table.states[test]
        if lens == "tuned" and layer != last:
            states = _tuned(table.select(train), final[train], states, seed)
        own, top = [], []
        for logits in _logits(model, states):
            own.append(competing[logits[:, torch.from_numpy(competing)].argmax(dim=1).numpy()])
            top.append(logits.argmax(dim=1).numpy())
        right = np.concatenate(own) == wanted
        scored = accuracy_by_value(right, values, seed, confidence, resamples)
        for name in ("accuracy", "low", "high"):
            found[name].append(float(scored[name]))
        found["anywhere"].append(float(np.mean(np.concatenate(top) == wanted)))
        found["agreement"].append(float(np.mean(np.concatenate(top) == model_says)))
    shape = (len(LENSES), len(layers))
    return xr.Dataset(
        {
            name: (("lens", "layer"), np.array(column).reshape(shape))
            for name, column in found.items()
        }
        | {
            "chance": float(np.unique(wanted, return_counts=True)[1].max() / len(wanted)),
            "n_tokens": len(competing),
        },
        coords={"lens": list(LENSES), "layer": layers},
        attrs={**collected.attrs, "seed": seed, "confidence": confidence, "test_rows": len(test)},
    )


def _rows(
    tables: dict[Label, StateTable], value_share: float, template_share: float, seed: int
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    held = hold_out(tables, value_share, template_share, seed)
    table = next(iter(tables.values()))
    return held.train_rows(table).nonzero()[0], held.test_rows(table).nonzero()[0]


def _tuned(
    table: StateTable,
    final: Float[np.ndarray, "train d"],
    states: Float[np.ndarray, "test d"],
    seed: int,
) -> Float64[np.ndarray, "test d"]:
    """States as the last residual that they are likeliest to become."""
    group = np.zeros(final.shape[1], dtype=np.int64)
    fit = ridge_by_value(
        table.states, final.astype(np.float64), table.values, group, _STRENGTHS, 5, seed
    )
    return states @ fit.coef.T + fit.intercept


def _logits(model: Model, states: Float[np.ndarray, "row d"]) -> Iterator[Float[Tensor, "row v"]]:
    """Logits of all tokens, as many rows at a time as memory is meant to hold."""
    decoder = model.decoder
    for rows in batches(len(states), 3 * 4 * model.spec.d_vocab_out):
        with exact(decoder.device):
            part = torch.from_numpy(np.array(states[rows], dtype=np.float32))
            yield decoder.logits(part.to(decoder.device)).float().cpu()
