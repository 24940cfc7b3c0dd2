"""Sections about a process itself: the tree of its beliefs, and how well it can be predicted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, words
from mechnum.report.belief_frames import (
    POINTS,
    colours_of,
    depth_frame,
    drawn_states,
    plane_of,
    some,
)
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.page import Section

_EXACT = "none: exact, the process is known"
_ROUNDING = 1e-9  # What an entropy that never rises may rise by.
_PICTURED = 250  # Nodes that a picture of the tree can show one by one.


def tree_section(results: xr.DataTree) -> Section:
    """Its first depths as a picture, all of them as a table."""
    frame, tree = depth_frame(results), results["mixed_states"].to_dataset()
    nodes, edges = _picture(tree)
    depth = int(nodes["depth"].max())
    distinct, total = tree.sizes["mixed_state"], int(frame["strings"].sum())
    picture = Figure(
        title="Mixed-state tree",
        views={"tree": figures.tree_picture(nodes, edges)},
        caption=Caption(
            text="Each node is a belief that an observer of the tokens can come to; a line is a "
            f"token. Strings that lead to the same belief share a node. The first {depth} tokens "
            "are drawn, coloured by the belief: each hidden state has a colour, and a belief is "
            "their mixture.",
            estimand="Bayes' posterior over the hidden states, exact",
            n=f"{len(nodes):,} of {tree.sizes['node']:,} nodes",
            interval=_EXACT,
            null="one node at each depth: tokens that tell nothing of the hidden state",
        ),
        alt=f"A tree of {len(nodes)} beliefs from left to right.",
        data=nodes.drop(columns=["colour", "hover"]),
        width=480,
    )
    table = Table(
        title="The tree by depth",
        frame=frame.rename(
            columns={
                "beliefs": "different beliefs",
                "new": "not seen before",
                "entropy": "entropy of the next token, nats",
            }
        ),
        caption=Caption(
            text=f"{distinct:,} different beliefs after up to {int(frame['depth'].iloc[-1])} "
            f"tokens, to which {total:,} strings lead.",
            estimand="Bayes' posteriors over the hidden states, those closer than "
            f"{words.number(float(tree.attrs['tolerance']), 1)} being one; mean entropy over "
            "strings by probability",
            n=f"all {total:,} strings",
            interval=_EXACT,
            null="one belief at each depth, and an entropy that never falls: tokens that tell "
            "nothing of the hidden state",
        ),
    )
    return Section("Mixed-state tree", [picture, table])


def simplex_section(results: xr.DataTree) -> Section | None:
    """All beliefs of the tree in the plane; nothing to draw of a single state."""
    tree = results["mixed_states"].to_dataset()
    beliefs = tree["belief"].values
    if beliefs.shape[1] < 2:
        return None
    nodes = tree["node_state"].values
    weights = np.bincount(nodes, tree["probability"].values, len(beliefs))
    names = [str(name) for name in tree["state"].values]
    plane = plane_of(beliefs, weights, names, drawn_states(results))
    rows = some(len(beliefs))
    hover = [
        f"after {depth} tokens<br>{_belief(names, own)}"
        for depth, own in zip(tree["first_depth"].values[rows], beliefs[rows], strict=True)
    ]
    size = 3.5 if len(rows) > 100 else 8.0
    figure = figures.simplices(
        {"true beliefs": beliefs[rows]}, plane, colours_of(beliefs[rows]), hover, size
    )
    cut = f", {POINTS:,} of them" if len(rows) < len(beliefs) else ""
    data = pd.DataFrame(beliefs[rows], columns=pd.Index(names))
    return Section(
        "Beliefs",
        [
            Figure(
                title="All beliefs of the tree",
                views={"beliefs": figure},
                caption=Caption(
                    text=f"Every belief that {len(np.unique(tree['depth'].values)) - 1} tokens can "
                    f"lead to{cut}, coloured as in the tree.",
                    estimand="Bayes' posterior over the hidden states, exact",
                    n=f"{len(rows):,} beliefs",
                    interval=_EXACT,
                    null="one point more than there are tokens, at most: a process whose last "
                    "token says all that there is to know",
                ),
                alt="Points of beliefs in the plane.",
                data=data,
                width=360,
                widest=560,
            )
        ],
    )


def entropy_section(results: xr.DataTree) -> Section:
    """How fast the next token becomes as predictable as it ever will be."""
    rate = float(results["entropy"].to_dataset()["rate"])
    frame = depth_frame(results)[["depth", "entropy"]]
    return Section(
        "How well it can be predicted",
        [
            Figure(
                title="Entropy of the next token",
                views={"entropy": figures.entropy_line(frame, rate)},
                caption=Caption(
                    text="How uncertain the next token is to an observer who knows the process and "
                    f"has seen so many tokens. {rate_words(results)}",
                    estimand="myopic entropy in nats, mean over strings by probability",
                    n=f"all strings of up to {int(frame['depth'].iloc[-1])} tokens",
                    interval=_EXACT,
                    null="a flat line: tokens that do not depend on those before. No predictor has "
                    "a lower loss than this",
                ),
                alt="A line of entropy by tokens seen.",
                data=frame,
                width=420,
                widest=720,
            )
        ],
    )


def rate_words(results: xr.DataTree) -> str:
    """What the entropy of the next token comes to in the long run."""
    entropy = results["entropy"].to_dataset()
    rate, low, high = (float(entropy[name]) for name in ("rate", "rate_low", "rate_high"))
    if rate != rate:
        return "The entropy rate takes too many tokens to bound."
    exact = (
        "exact" if low == high else f"between {words.number(low, 5)} and {words.number(high, 5)}"
    )
    falls = bool((np.diff(entropy["entropy"].values) < _ROUNDING).all())
    moves = "It falls to" if falls else "In the long run its mean is"
    return f"{moves} the entropy rate, {words.number(rate, 4)} nats ({exact})."


def _picture(tree: xr.Dataset) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes and edges of the depths that a picture has room for."""
    depth, label = tree["depth"].values, tree["node_state"].values
    sizes = np.bincount(depth)
    shown = max(int((sizes.cumsum() <= _PICTURED).sum()), 2)
    kept = depth < shown
    order = np.concatenate([np.arange(size) / max(size - 1, 1) for size in sizes[:shown]])
    order[depth[kept] == 0] = 0.5
    places = {(d, s): h for d, s, h in zip(depth[kept], label[kept], order, strict=True)}
    beliefs, names = tree["belief"].values, [str(name) for name in tree["state"].values]
    nodes = pd.DataFrame(
        {
            "depth": depth[kept],
            "height": order,
            "probability": tree["probability"].values[kept],
            "strings": tree["strings"].values[kept],
            "colour": colours_of(beliefs[label[kept]]),
            "hover": [
                f"{_belief(names, beliefs[s])}<br>probability {words.number(float(p))}"
                for s, p in zip(label[kept], tree["probability"].values[kept], strict=True)
            ],
        }
    )
    edges = [
        (d, height, d + 1, places[d + 1, after])
        for (d, s), height in places.items()
        for after in tree["to"].values[s]
        if (d + 1, after) in places
    ]
    return nodes, pd.DataFrame(edges, columns=pd.Index(["x0", "y0", "x1", "y1"]))


def _belief(names: list[str], belief: np.ndarray) -> str:
    """The likeliest states with their probabilities."""
    order = np.argsort(-belief, kind="stable")[:6]
    return ", ".join(f"{names[i]} {words.number(float(belief[i]))}" for i in order if belief[i] > 0)
