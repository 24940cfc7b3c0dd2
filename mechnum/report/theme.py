"""The look of the figures: colours that people with any colour vision can tell apart, both themes.

Series colours have a contrast of at least 3:1 on the light and on the dark page, and every series
has a marker and a dash of its own besides. Diverging scales are centred at 0.
"""

from __future__ import annotations

from typing import Any

SERIES = ("#2f7fbf", "#cf6a10", "#159a72", "#8e63c7", "#c94f6d", "#7a828c")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross")

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

# Blue to red through the page's own ground: zero looks like nothing on both themes.
_DIVERGING = {
    "light": ["#0b3f75", "#2f7fbf", "#9cc7e6", "#f6f6f4", "#f0b58f", "#cf5a2b", "#7d2409"],
    "dark": ["#bfe0fa", "#5aa6de", "#28628f", "#1d2128", "#8f4325", "#e07f4b", "#ffd9c2"],
}
_SEQUENTIAL = {
    "light": ["#f6f6f4", "#b9d6ea", "#6aa9d6", "#2f7fbf", "#0b3f75"],
    "dark": ["#1d2128", "#1f4f78", "#2f7fbf", "#7fbbe6", "#d6ebfb"],
}
EDGE = "#7a828c"  # Outlines of points, and whiskers.

# Nodes of graphs, whose labels stand inside: readable on both grounds.
NODE, ON_NODE = "#46525f", "#ffffff"

# Scales of points, readable on both grounds; the second one is cyclic.
POINTS = ["#6a4fa3", "#3288bd", "#3fae8d", "#9fc24d", "#e6b42e"]
PHASES = ["#c94f6d", "#cf9a10", "#3fae6d", "#2f7fbf", "#8e63c7", "#c94f6d"]

_INK = {"light": "#1c2127", "dark": "#e4e7eb"}
_MUTED = {"light": "#59636e", "dark": "#a3adb8"}
_GRID = {"light": "#e3e6ea", "dark": "#30363f"}
_ZERO = {"light": "#9aa3ad", "dark": "#6b7580"}
GROUND = {"light": "#ffffff", "dark": "#14171c"}


def band(colour: str, alpha: float = 0.16) -> str:
    """A series colour `#rrggbb` made transparent for the band of an interval."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def template(mode: str) -> dict[str, Any]:
    """The plotly template of a theme, "light" or "dark", as plain JSON."""
    axis = {
        "gridcolor": _GRID[mode],
        "zerolinecolor": _ZERO[mode],
        "zerolinewidth": 1,
        "linecolor": _ZERO[mode],
        "tickfont": {"color": _MUTED[mode]},
        "title": {"font": {"color": _INK[mode], "size": 13}, "standoff": 8},
        "automargin": True,
    }
    return {
        "layout": {
            "font": {"family": FONT, "size": 13, "color": _INK[mode]},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(SERIES),
            "colorscale": {
                "diverging": _steps(_DIVERGING[mode]),
                "sequential": _steps(_SEQUENTIAL[mode]),
            },
            "coloraxis": {
                "colorscale": _steps(_DIVERGING[mode]),
                "colorbar": {
                    "outlinewidth": 0,
                    "thickness": 12,
                    "ticks": "",
                    "tickfont": {"color": _MUTED[mode]},
                    "title": {"side": "right", "font": {"color": _INK[mode], "size": 13}},
                },
            },
            "hoverlabel": {
                "bgcolor": GROUND[mode],
                "bordercolor": _ZERO[mode],
                "font": {"family": FONT, "color": _INK[mode]},
                "align": "left",
            },
            "hovermode": "closest",
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"font": {"color": _INK[mode]}},
            "annotationdefaults": {"font": {"color": _INK[mode], "size": 13}},
            "margin": {"l": 56, "r": 16, "t": 32, "b": 48},
        }
    }


def _steps(colours: list[str]) -> list[list[Any]]:
    last = len(colours) - 1
    return [[index / last, colour] for index, colour in enumerate(colours)]
