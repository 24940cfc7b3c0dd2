"""Clock or pizza: every figure, and a word where they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from mechnum.grokking.alignment import disc_or_torus, phase_alignment
from mechnum.grokking.circles import circularity, isolate_circles
from mechnum.grokking.logits import Logits
from mechnum.grokking.modulus import sums
from mechnum.grokking.nets import EmbeddingNet, ModelNet, as_net, net_logits
from mechnum.grokking.pairs import neuron_maps
from mechnum.grokking.symmetry import distance_irrelevance, gradient_symmetricity
from mechnum.intervals import mean_interval
from mechnum.models.model import Model
from mechnum.patching.provenance import model_attributes
from mechnum.tasks.arithmetic import ModularAddition

# Between the published runs of attention rate up to 0.6 and those above, where both figures turn:
# symmetricity .92 to .73, irrelevance .42 to .62 (section 4.3, means of bins of .1).
PIZZA = {"symmetricity": 0.9, "irrelevance": 0.45}
CLOCK = {"symmetricity": 0.75, "irrelevance": 0.6}
STRONG = 0.1
"""Of the strongest circle's power: from here on a circle is counted with the strong ones."""
EXPLAINED = 0.5
"""What a formula explains of a circle's logits at least, where it counts as that circle's."""
_BEST = {
    "clock": "by the clock formula",
    "pizza": "by the pizza formula",
    "accompanying": "accompanying",
    "none": "by none",
}
CAUTION = (
    "Nets whose first step adds the embeddings are symmetric by their architecture, and deeper "
    "nets nearly so. Moisescu-Pareja et al. 2026 find the same first layer in clocks and pizzas."
)


def clock_or_pizza(
    net: EmbeddingNet | Model,
    n: int = 100,
    seed: int | None = None,
    n_circles: int = 4,
    task: ModularAddition | None = None,
) -> xr.Dataset:
    """All figures of Zhong et al. 2023 for one net, and what they say together.

    Args:
        net: a net of embeddings, or a model that knows its task.
        n, seed: the triples of `gradient_symmetricity`; the published ones by default.
        n_circles: circles that are isolated.
        task: of a model that does not say what it was trained on.

    Returns:
        `symmetricity`, mean of the triples, with `symmetricity_low` and `symmetricity_high` of a
        95 % bootstrap interval, and `cosine` over triple; `irrelevance` over form; `circularity`
        over table ("a", "b"); `accuracy` of all pairs; and what `isolate_circles` gives by Fourier
        modes, since components mix circles of equal variance. Of a model with neurons also
        `first_layer_cka` over (frequency, shape), see `disc_or_torus`, and `aligned` and
        `aligned_by_chance` of its first layer's pre-activations, see `phase_alignment`.
        Attributes: `verdict` in one word, "pizza-like", "clock-like" or "unclear"; `because`, the
        figures beside their thresholds; `caution`.

        "pizza-like" takes a symmetricity of at least .9, an irrelevance (of the right logit) of at
        most .45, and a strongest circle that the pizza formula explains better. "clock-like" takes
        at most .75, at least .6, and the clock formula. Anything else is "unclear", and so is a net
        that is not right for 99 % of the pairs, or has no such figures, since it does not depend on
        what it reads.

    Raises:
        MechnumError: on a model without a modular task, on a p that is no prime of 3 or more, and
            on weights that are not finite.
    """
    net = as_net(net, task)
    logits = net_logits(net)
    cosines = gradient_symmetricity(net, n, seed)
    interval = mean_interval(cosines, "triple")
    circles = isolate_circles(net, "fourier", n_circles)
    found = circles.assign(
        cosine=cosines,
        symmetricity=interval["mean"],
        symmetricity_low=interval["low"],
        symmetricity_high=interval["high"],
        irrelevance=distance_irrelevance(logits),
        circularity=("table", [circularity(net.embeddings_a), circularity(net.embeddings_b)]),
        accuracy=_accuracy(logits),
    ).assign_coords(table=["a", "b"])
    said = {}
    if isinstance(net, ModelNet):
        said = model_attributes(net.model)
        found = found.assign(_first_layer(net))
    verdict, because = _verdict(found)
    words = {"verdict": verdict, "because": because, "caution": CAUTION}
    return found.assign_attrs(**said, **cosines.attrs, **words)


def _verdict(found: xr.Dataset) -> tuple[str, str]:
    symmetricity = float(found["symmetricity"])
    irrelevance = float(found["irrelevance"].sel(form="correct"))
    clock, pizza = (
        float(found["explained"].isel(circle=0).sel(formula=name)) for name in ("clock", "pizza")
    )
    right = f"right for {_percent(found['accuracy'])} of the pairs"
    if np.isnan([symmetricity, clock, pizza]).any():
        return "unclear", f"{right}, {_missing(symmetricity, clock)}"

    def because(of_symmetricity: str = "", of_irrelevance: str = "") -> str:
        return (
            f"symmetricity {symmetricity:.3f}{of_symmetricity}, irrelevance {irrelevance:.3f}"
            f"{of_irrelevance}, strongest circle pizza {_percent(pizza)} and clock "
            f"{_percent(clock)}{_of_all_circles(found)}"
        )

    if float(found["accuracy"]) < 0.99:
        return "unclear", f"{right} (≥ 99 %), {because()}"
    if (
        symmetricity >= PIZZA["symmetricity"]
        and irrelevance <= PIZZA["irrelevance"]
        and pizza > clock
    ):
        return "pizza-like", because(*(f" ({sign} {limit:g})" for sign, limit in _at(PIZZA, "≥≤")))
    if (
        symmetricity <= CLOCK["symmetricity"]
        and irrelevance >= CLOCK["irrelevance"]
        and clock > pizza
    ):
        return "clock-like", because(*(f" ({sign} {limit:g})" for sign, limit in _at(CLOCK, "≤≥")))
    return "unclear", because(
        f" (pizza ≥ {PIZZA['symmetricity']:g}, clock ≤ {CLOCK['symmetricity']:g})",
        f" (pizza ≤ {PIZZA['irrelevance']:g}, clock ≥ {CLOCK['irrelevance']:g})",
    )


def _at(limits: dict[str, float], signs: str) -> list[tuple[str, float]]:
    return list(zip(signs, (limits["symmetricity"], limits["irrelevance"]), strict=True))


def _of_all_circles(found: xr.Dataset) -> str:
    """How many of the strong circles each formula explains best: the strongest may stand alone."""
    strong = (found["power"] >= STRONG * found["power"].max()).values
    if strong.sum() < 2:
        return ""
    explained = found["explained"].isel(circle=strong).fillna(-np.inf)
    best = explained.idxmax("formula").where(explained.max("formula") >= EXPLAINED, "none").values
    counted = [
        f"{int((best == name).sum())} {words}"
        for name, words in _BEST.items()
        if (best == name).any()
    ]
    return f"; of {strong.sum()} strong circles {', '.join(counted)}"


def _percent(share: Any) -> str:
    return f"{100 * float(share):.1f} %"


def _missing(symmetricity: float, clock: float) -> str:
    """Why figures are NaN: something is the same whatever the net reads."""
    reasons = []
    if np.isnan(symmetricity):
        reasons.append("no symmetricity, since the gradients to the embeddings are zero")
    if np.isnan(clock):
        reasons.append("no formula, since the logits do not depend on the strongest circle")
    return ", and ".join(reasons)


def _first_layer(net: ModelNet) -> dict[str, xr.DataArray]:
    """What disputes the two names; nothing in a net without neurons there."""
    if net.model.decoder.weights.blocks[0].mlp is None:
        return {}
    maps = neuron_maps(net.model, net.task)
    aligned = phase_alignment(maps)
    return {
        "first_layer_cka": disc_or_torus(maps)["cka"],
        "aligned": aligned["aligned"],
        "aligned_by_chance": aligned["aligned_by_chance"],
    }


def _accuracy(logits: Logits) -> float:
    return float(np.mean(logits.argmax(axis=-1) == sums(len(logits))))
