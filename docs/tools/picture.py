"""The picture of the README, from real results of a bundled model, as SVG in light and dark.

`python -m docs.tools.picture` writes it anew: the helix of the numbers, effects of the parts, and
the operand map of one neuron of `adder-gptj`.
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import xarray as xr
from jaxtyping import Float

import mechnum as mn

ASSETS = Path(__file__).parents[1] / "assets"
WIDTH, HEIGHT, PANEL = 1060, 360, 320
# Low, middle and high: the same in both themes.
RAMP = np.array([[38, 70, 140], [232, 236, 241], [196, 78, 40]], dtype=float)


@dataclass(frozen=True)
class Theme:
    """Colours of one version."""

    name: str
    text: str
    faint: str
    total: str
    direct: str


THEMES = (
    Theme("light", "#1f2328", "#d0d7de", "#3b5bdb", "#e8590c"),
    Theme("dark", "#e6edf3", "#3d444d", "#748ffc", "#ff922b"),
)


@dataclass(frozen=True)
class Results:
    """What the picture shows.

    Attributes:
        helix: of each number the coordinates cos and sin of period 10, and the linear one, 0 to 1.
        names: of the heads and MLPs.
        total, direct: their mean effects in logit difference.
        neuron, formula, map: one neuron, its fit in words, and its activation over (a, b).
    """

    helix: Float[np.ndarray, "number 3"]
    names: list[str]
    total: Float[np.ndarray, " node"]
    direct: Float[np.ndarray, " node"]
    neuron: str
    formula: str
    map: Float[np.ndarray, "a b"]


def measure() -> Results:
    """The numbers behind the picture."""
    model = mn.load("adder-gptj")
    task = mn.tasks.addition(range(100))
    accuracy = task.accuracy(model)
    pairs = task.pairs(model, n=100, vary="any", seed=0, accuracy=accuracy)
    parts = mn.effects(model, pairs, "head *.*, mlp 1-3").mean("pair")
    rows = mn.fourier.embedding_rows(model, range(100))
    numbers = rows["number"].values
    planes = mn.helix.helix_planes(mn.Helix().fit(numbers, rows.values), numbers, rows.values)
    fitted = mn.neurons.fit(model, task)
    ranked = mn.neurons.rank(model, pairs, top=50, seed=0)["top"].to_dataset()
    neuron = clearest(fitted, ranked)
    maps = mn.neurons.operand_maps(model, task, neuron)
    return Results(
        np.column_stack([planes.coordinates.sel(period=10).values, planes.linear.values / 99]),
        [str(node) for node in parts["node"].values],
        parts.total.values,
        parts.direct.values,
        neuron,
        mn.neurons.formula(fitted, neuron, terms=2),
        maps.pre.values.reshape(100, 100),
    )


def clearest(fitted: xr.Dataset, ranked: xr.Dataset) -> str:
    """Of the best neurons the one that waves describe best, but for period 2, which looks grey."""
    at = ranked["layer"].values, ranked["neuron"].values
    waves = fitted.amplitude.max("variable").values[at]
    slow = np.isin(fitted["period"].values[waves.argmax(axis=1)], (5, 10, 100))
    return str(ranked["node"].values[np.nanargmax(np.where(slow, fitted.r2.values[at], np.nan))])


def draw(results: Results, theme: Theme) -> str:
    """The picture in one theme."""
    panels = (
        (
            "Numbers lie on a helix",
            "embedding of 0 to 99, seen along period 10",
            helix(results, theme),
        ),
        ("Parts move the answer", "effect on the logit difference", bars(results, theme)),
        (f"What {results.neuron} computes", results.formula, operand_map(results, theme)),
    )
    body = "".join(
        f'<g transform="translate({30 + i * (PANEL + 20)} 0)">'
        + text(PANEL / 2, 24, title, theme.text, 16, "600")
        + text(PANEL / 2, 44, below, theme.text, 11)
        + f'<g transform="translate(0 56)">{content}</g></g>'
        for i, (title, below, content) in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif"><title>Numbers of adder-gptj on a helix of period '
        "10, total and direct effects of its heads and MLPs, and the operand map of one neuron"
        f"</title>{body}</svg>\n"
    )


def helix(results: Results, theme: Theme) -> str:
    """Each number where its embedding lies, from the side and a little from above."""
    cos, sin, linear = results.helix.T
    across, down = PANEL / 2 + 105 * cos, 246 - 214 * linear - 24 * sin
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
    drawn = [f'<polyline points="{line}" fill="none" stroke="{theme.faint}"/>']
    for number in np.argsort(-sin):  # What is nearer is drawn later.
        red, green, blue = ramp(np.array(number / 99))
        x, y = across[number], down[number]
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="rgb({red},{green},{blue})" '
            f'stroke="{theme.text}" stroke-opacity="0.35" stroke-width="0.6"/>'
        )
        if number % 30 in (0, 5):
            beside = 16 if number % 10 == 0 else -16
            drawn.append(text(x + beside, y + 4, str(number), theme.text, 11))
    return "".join(drawn)


def bars(results: Results, theme: Theme) -> str:
    """Total and direct effect of each head and MLP."""
    left, right = 66, 12
    step = 272 / len(results.names)
    unit = (PANEL - left - right) / max(results.total.max(), results.direct.max())
    drawn = []
    for i, name in enumerate(results.names):
        y = i * step
        drawn.append(text(left - 6, y + step * 0.72, name, theme.text, 10, anchor="end"))
        for effect, colour, offset in (
            (results.total[i], theme.total, 0.12),
            (results.direct[i], theme.direct, 0.5),
        ):
            width = max(0.0, effect) * unit
            drawn.append(
                f'<rect x="{left}" y="{y + offset * step:.1f}" width="{width:.1f}" '
                f'height="{0.36 * step:.1f}" fill="{colour}"/>'
            )
    for i, (word, colour) in enumerate((("total", theme.total), ("direct", theme.direct))):
        drawn.append(f'<rect x="{230}" y="{8 + 18 * i}" width="10" height="10" fill="{colour}"/>')
        drawn.append(text(246, 17 + 18 * i, word, theme.text, 12, anchor="start"))
    return "".join(drawn)


def operand_map(results: Results, theme: Theme) -> str:
    """One neuron's pre-activation over a (across) and b (up)."""
    values = results.map.T[::-1]
    scaled = (values - values.min()) / np.ptp(values)
    image = base64.b64encode(png(ramp(scaled))).decode()
    return (
        f'<image x="40" y="8" width="248" height="248" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{image}"/>'
        + text(164, 274, "a from 0 to 99", theme.text, 12)
        + f'<g transform="rotate(-90 28 132)">{text(28, 132, "b from 0 to 99", theme.text, 12)}</g>'
    )


def text(
    x: float, y: float, words: str, colour: str, size: int, weight: str = "400", anchor="middle"
) -> str:
    """One line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
        f'font-weight="{weight}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def ramp(values: Float[np.ndarray, "*shape"]) -> np.ndarray:
    """Colours [*shape, 3] of values from 0 to 1."""
    places = np.linspace(0, 1, len(RAMP))
    channels = [np.interp(values, places, channel) for channel in RAMP.T]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """Pixels [y, x, 3] as a PNG file."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


if __name__ == "__main__":
    found = measure()
    for theme in THEMES:
        (ASSETS / f"overview-{theme.name}.svg").write_text(draw(found, theme), encoding="utf-8")
