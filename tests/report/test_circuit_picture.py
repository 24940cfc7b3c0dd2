"""The picture of a circuit: layers upwards, edges as wide as their effect, nothing on top of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mechnum.errors import MechnumError
from mechnum.report import figures, theme
from mechnum.report.circuit_layout import layout
from mechnum.report.figures.circuit import strongest
from mechnum.report.sections.circuit import circuit_frames

from .measurements import circuit_results
from .test_patching_figures import content


@pytest.fixture
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    return circuit_frames(circuit_results())


def nodes(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["name", "kind", "layer", "index"])


def edges(*rows) -> pd.DataFrame:
    names = ["sender", "receiver", "reader", "effect", "low", "high", "link"]
    return pd.DataFrame([(*row, False)[:7] for row in rows], columns=names)


NAN = np.nan
SMALL = nodes(
    ("embed", "embed", NAN, NAN),
    ("head 3.7", "head", 3, 7),
    ("head 9.2", "head", 9, 2),
    ("mlp 3", "mlp", 3, NAN),
    ("neuron 3.40", "neuron", 3, 40),
    ("neuron 3.90", "neuron", 3, 90),
    ("logits", "logits", NAN, NAN),
)


def lines_and_words(drawn: dict) -> tuple[list[dict], list[str]]:
    """The edges' lines as drawn, and the different hovers of edges, in the same order."""
    lines = [part for part in drawn["data"] if part["mode"] == "lines" and "name" not in part]
    hover = next(part for part in drawn["data"] if part.get("name") == "edges")
    return lines, list(dict.fromkeys(hover["hovertext"]))


def test_layers_rise_from_the_embedding_to_the_logits(frames):
    placed = layout(frames[0]).places
    assert min(placed.values(), key=lambda place: place[1]) == placed["embed"]
    assert max(placed.values(), key=lambda place: place[1]) == placed["logits"]
    for _, edge in frames[1].iterrows():
        assert placed[edge["reader"]][1] > placed[edge["sender"]][1]


def test_heads_of_one_number_share_a_column_and_no_two_nodes_a_place(frames):
    placed = layout(frames[0]).places
    assert len({placed[f"head {layer}.1"][0] for layer in range(3)}) == 1
    assert len(set(placed.values())) == len(placed)


def test_layers_and_heads_without_a_node_take_no_room():
    where = layout(SMALL)
    assert list(where.columns.values()) == ["head 2", "head 7", "MLP", "neurons", ""]
    assert list(where.layers.values()) == ["embed", "layer 3", "layer 9", "logits"]
    assert where.places["neuron 3.40"][0] + 1 == where.places["neuron 3.90"][0]
    assert where.places["mlp 3"][1] > where.places["head 3.7"][1]


def test_curves_join_their_nodes_and_inputs_lie_side_by_side():
    where = layout(SMALL)
    ends = {}
    for receiver in ("q 9.2", "k 9.g2", "v 9.g2"):
        x, y = where.curve("embed", "head 9.2", receiver)
        assert (x[0], y[0]) == where.places["embed"]
        assert y[-1] == where.places["head 9.2"][1]
        assert (np.diff(y) >= 0).all()
        ends[receiver[0]] = x[-1]
    assert ends["q"] < ends["k"] == where.places["head 9.2"][0] < ends["v"]


def test_an_edge_within_a_column_passes_beside_the_nodes_between():
    column = nodes(*[(f"mlp {layer}", "mlp", layer, NAN) for layer in range(3)])
    where = layout(column)
    x, y = where.curve("mlp 0", "mlp 2", "mlp_in 2")
    between = np.argmin(np.abs(y - where.places["mlp 1"][1]))
    assert abs(x[between] - where.places["mlp 1"][0]) > 0.3
    x, _ = where.curve("mlp 0", "mlp 1", "mlp_in 1")
    assert np.ptp(x) == 0


def test_width_is_size_and_look_is_sign():
    drawn = content(
        figures.circuit_picture(
            SMALL,
            edges(
                ("embed", "q 3.7", "head 3.7", 4.0, 3.0, 5.0),
                ("head 3.7", "logits", "logits", -2.0, -2.5, -1.5),
                ("mlp 3", "logits", "logits", NAN, NAN, NAN),
            ),
        )
    )
    lines, hover = lines_and_words(drawn)
    unknown, negative, strong = lines
    assert strong["line"]["width"] == pytest.approx(8.0)
    assert negative["line"]["width"] == pytest.approx((0.8 + 8.0) / 2)
    assert strong["line"]["color"] != negative["line"]["color"]
    assert (strong["line"]["dash"], negative["line"]["dash"]) == ("solid", "dash")
    assert unknown["line"]["color"] == theme.EDGE
    assert hover == [
        "<b>mlp 3 → logits</b><br>no effect was measured",
        "<b>head 3.7 → logits</b><br>−2.00 [−2.50, −1.50] logits",
        "<b>embed → q 3.7</b><br>+4.0 [3.0, 5.0] logits",
    ]
    # The strongest is drawn last of the edges, and all nodes after it.
    kinds = [line["mode"] for line in drawn["data"]]
    assert kinds.index("markers+text") > max(i for i, kind in enumerate(kinds) if kind == "lines")
    names = [line.get("name") for line in drawn["data"]]
    assert {"positive effect", "negative effect"} <= set(names)


def test_nodes_say_what_goes_in_and_out():
    drawn = content(
        figures.circuit_picture(
            SMALL,
            edges(
                ("embed", "q 3.7", "head 3.7", 1.0, 0.0, 2.0),
                ("embed", "v 3.g7", "head 3.7", -3.0, -4.0, -2.0),
                ("head 3.7", "logits", "logits", 2.0, 1.0, 3.0),
            ),
        )
    )
    heads = next(line for line in drawn["data"] if line.get("name") == "heads")
    assert heads["text"] == ["3.7", "9.2"]
    assert heads["hovertext"][0] == (
        "<b>head 3.7</b><br>2 edges in, strongest: embed at v 3.g7 (−3.00 logits)"
        "<br>1 edge out, strongest: logits (+2.00 logits)"
    )
    assert heads["hovertext"][1] == "<b>head 9.2</b>"


def test_of_many_edges_the_strongest_are_drawn():
    all_nodes, all_edges = circuit_frames(circuit_results(6, 6))
    assert len(all_edges) > 300
    drawn = content(figures.circuit_picture(all_nodes, all_edges))
    lines, hover = lines_and_words(drawn)
    assert len(hover) == figures.MOST_EDGES
    assert len(lines) == figures.MOST_EDGES
    kept = strongest(all_edges)["effect"].abs().min()
    assert (all_edges["effect"].abs() > kept).sum() == figures.MOST_EDGES - 1


def test_links_to_heads_that_share_keys_are_no_edges():
    shared = nodes(
        ("embed", "embed", NAN, NAN), ("kv 0.g1", "kv", 0, 1), ("head 0.3", "head", 0, 3)
    )
    rows = edges(("embed", "k 0.g1", "kv 0.g1", 1.0, 0.5, 1.5))
    link = rows.assign(sender="kv 0.g1", receiver="head 0.3", reader="head 0.3", effect=NAN,
                       low=NAN, high=NAN, link=True)  # fmt: skip
    drawn = content(figures.circuit_picture(shared, pd.concat([rows, link], ignore_index=True)))
    _, hover = lines_and_words(drawn)
    assert "<b>kv 0.g1 → head 0.3</b><br>reads these keys and values" in hover
    places = layout(shared).places
    assert places["kv 0.g1"][1] < places["head 0.3"][1]


def test_labels_inside_nodes_stand_out():
    from .test_figures import luminance

    low, high = sorted([luminance(theme.NODE), luminance(theme.ON_NODE)])
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_places_without_a_column_are_refused():
    with pytest.raises(MechnumError, match="has no place for resid_post: give head"):
        layout(nodes(("resid_post 3", "resid_post", 3, NAN)))


def test_empty_circuits_are_drawn():
    none = edges().astype({"effect": float, "link": bool})
    drawn = content(figures.circuit_picture(SMALL[SMALL["layer"].isna()], none))
    assert all(a["name"] != b["name"] for a, b in combinations(drawn["data"], 2))
