"""The report on belief states, of a net or of a process alone, and its summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import reading, words
from mechnum.report.belief_frames import (
    ALL,
    LAST,
    PLACES,
    also_read,
    best_norm,
    control_frame,
    depth_frame,
    followed_frame,
    joined_words,
    layer_frame,
    patched_place,
    positions_words,
)
from mechnum.report.blocks import Block, Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.belief_changes import patching_section, training_section
from mechnum.report.sections.beliefs import controls_section, layers_section, side_by_side
from mechnum.report.sections.processes import (
    entropy_section,
    rate_words,
    simplex_section,
    tree_section,
)
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


_READ_SO = (
    "MSE: mean squared error of beliefs read on strings that are held out, with its 95 % interval "
    "over strings. R² is 0 where the mean belief is as good. Informative: better than all "
    "controls, by whole intervals."
)


def beliefs_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.beliefs` gives, with or without a net."""
    net = "geometry" in results.children
    found: list[Block] = [Text(points=_points(results))]
    if net:
        found.append(Text([_READ_SO]))
    sections = [Section("What was found", found)]
    if net:
        of_net = (
            side_by_side,
            controls_section,
            layers_section,
            training_section,
            patching_section,
        )
        sections += [section for make in of_net if (section := make(results)) is not None]
    else:
        sections += [section for section in [simplex_section(results)] if section is not None]
    sections += [tree_section(results), entropy_section(results), provenance_section(results)]
    process = str(results.attrs["process"])
    title = f"Beliefs about {process}"
    return Page(
        title=f"{title} in {results.attrs.get('model', 'a net')}" if net else title,
        lead=_lead(results),
        sections=sections,
    )


def beliefs_summary(results: xr.DataTree) -> Group:
    """Errors by layer and the verdicts, or the tree by depth, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    table = bare_table()
    head = " · ".join(
        str(results.attrs[key]) for key in ("model", "process") if key in results.attrs
    )
    lines = [
        Line(head, style="bold"),
        *(Line(f"{name}: {text}") for name, text in _points(results)),
    ]
    if "geometry" not in results.children:
        for name in ("tokens seen", "beliefs", "new", "strings", "entropy"):
            table.add_column(name, justify="right")
        for row in depth_frame(results).to_dict("records"):
            counts = [f"{row[name]:,}" for name in ("depth", "beliefs", "new", "strings")]
            table.add_row(*counts, words.number(float(row["entropy"]), 4))
        table.caption = "Entropy of the next token in nats."
        return Group(*lines, table)
    for name in ("layer", "norm", "MSE", "R²", "untrained", "verdict"):
        table.add_column(name, justify="left" if name in ("layer", "norm", "verdict") else "right")
    for row in layer_frame(results).to_dict("records"):
        numbers = [words.number(row[name]) for name in ("mse", "r2", "untrained")]
        table.add_row(row["layer"], row["norm"], *numbers, row["verdict"])
    table.caption = (
        "Mean squared error of beliefs from residuals, on strings that are held out; layer k is "
        "what block k reads,\nlast the residual after all blocks, all these joined."
    )
    return Group(*lines, table)


def _lead(results: xr.DataTree) -> str:
    if "geometry" not in results.children:
        tree = results["mixed_states"].to_dataset()
        return (
            f"{len(results['mixed_states']['state'])} hidden states, "
            f"{len(results['mixed_states']['token'])} tokens; {tree.sizes['mixed_state']:,} "
            f"beliefs after up to {tree.attrs['max_depth']} tokens."
        )
    return " ".join(
        f"{words.sentence(PLACES[layer])}: {_verdict(results, layer)}" for layer in PLACES
    )


def _verdict(results: xr.DataTree, layer: str) -> str:
    at = results["geometry"].to_dataset().sel(layer=layer, norm=best_norm(results))
    own = at.sel(predictor="states")
    ends = [float(own[name]) for name in ("mse", "mse_low", "mse_high")]
    return (
        f"{at['verdict'].values} (MSE {words.interval(*ends, sign=False)}, R² "
        f"{words.number(float(own['r2']))})."
    )


def _reasoned(results: xr.DataTree, layer: str) -> str:
    """The verdict, why, and the best of the controls that are beaten."""
    at = results["geometry"].to_dataset().sel(layer=layer, norm=best_norm(results))
    text = f"{_verdict(results, layer).removesuffix('.')}; {at['reason'].values}"
    worse = at["control"].values[at["gain"].values > 0]
    if at["verdict"].values != "informative" or not len(worse):
        return f"{text}."
    best = at["r2"].sel(predictor=worse).to_series()
    return f"{text}; the best of these: {best.idxmax()} (R² {words.number(best.max())})."


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, in a sentence each."""
    points = _net_points(results) if "geometry" in results.children else []
    if (patched := reading.group(results, "patching")) is not None:
        points += _causal_point(patched)
    tree = results["mixed_states"].to_dataset()
    distinct = tree.sizes["mixed_state"]
    told = "one belief, always the same," if distinct == 1 else f"{distinct:,} different beliefs"
    points.append(
        (
            "Mixed states",
            f"{told} after up to {tree.attrs['max_depth']} tokens.",
        )
    )
    first = float(results["entropy"].to_dataset()["entropy"].sel(seen=0))
    text = f"{words.number(first)} nats before any token is seen. {rate_words(results)}"
    points.append(("Entropy of the next token", text))
    return points + reading.left_out(results)


def _net_points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What is read from the net's residuals."""
    points = []
    if "trained_on" in results.attrs:
        points.append(
            (
                "Another process",
                f"the net was trained on {results.attrs['trained_on']}; what is read here says "
                "what its residuals keep of the tokens, and not that it holds such beliefs.",
            )
        )
    for layer, place in PLACES.items():
        points.append((words.sentence(place), _reasoned(results, layer)))
    points.append(("Read at", f"{positions_words(results)}."))
    frame = control_frame(results, LAST).set_index("predictor")
    own, untrained = (float(frame.loc[name, "mse"]) for name in ("states", "untrained net"))
    # Of beliefs that never change, all errors are rounding.
    if own > 0 and frame["r2"].notna()["states"]:
        points += [
            ("Last beside joined", f"{joined_words(results)}."),
            (
                "Beside an untrained net",
                f"the error from the last residual is {words.number(untrained / own)} times as "
                "large in a net of the same shape without training.",
            ),
        ]
    for name, node in also_read(results).items():
        points.append((f"At the {name}, {PLACES[ALL]}", _reasoned(node, ALL)))
    return points


def _causal_point(patched: xr.Dataset) -> list[tuple[str, str]]:
    """Where predictions follow a replaced belief most; nothing where they need not move.

    The place is chosen on one half of the pairs and scored on the other, since the largest of
    several shares is too large by chance.
    """
    chosen, scored = (followed_frame(patched.isel(pair=slice(first, None, 2))) for first in (0, 1))
    of_all, again = (own[own["tokens"] == "all"].set_index("layer") for own in (chosen, scored))
    rated = of_all["belief"][of_all.index.isin(again.index)]
    if rated.empty:
        return []
    best = int(rated.idxmax())
    own = scored[scored["layer"] == best].set_index("tokens")
    followed = {
        patch: words.listed(
            [
                f"{words.percent(float(own.loc[tokens, patch]))} ({said})"
                for tokens, said in (("the next", "next token"), ("later", "later tokens"))
                if tokens in own.index
            ]
        )
        for patch in ("belief", "state", "random")
    }
    return [
        (
            "Causal test",
            f"replacing the belief in the {patched_place(patched, best)}, of all places where most "
            f"follows, moves predictions {followed['belief']} of the way to the other history's; "
            f"replacing all of the residual there, {followed['state']}, and as many random "
            f"directions, {followed['random']}. The place was chosen on half of the pairs, and "
            "these are shares of the other half.",
        )
    ]
