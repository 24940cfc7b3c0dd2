"""Scripts that a page carries inside itself, so that it opens from disk without a network."""

from __future__ import annotations

import base64
import gzip
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mechnum.errors import MechnumError

TEMPLATES = Path(__file__).parent / "templates"

# Scripts of the page itself, in the order in which they run.
_OWN = (
    "theme.js",
    "files.js",
    "maps.js",
    "tables.js",
    "figures.js",
    "attention.js",
    "start.js",
)


def own_script() -> str:
    """The page's own script."""
    return "\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in _OWN)


@cache
def packed(script: str) -> str:
    """A library compressed, as a page carries it; it is unpacked where the page is opened.

    Plotly and CircuitsVis would be most of every page otherwise.
    """
    return base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode("ascii")


def style() -> str:
    """The page's style sheet."""
    return (TEMPLATES / "page.css").read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """The plotly.js that the installed plotly package carries."""
    from plotly.offline import get_plotlyjs

    return _alone(get_plotlyjs())


@cache
def circuitsvis_script() -> str:
    """CircuitsVis' own bundled script (global name `CircuitsVis`).

    It is read as a file: importing circuitsvis would import torch, and its `render` asks the
    network before it decides to use this very file.
    """
    spec = find_spec("circuitsvis")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    script = folder / "dist" / "cdn" / "iife.js" if folder else None
    if script is None or not script.is_file():
        raise MechnumError(
            "CircuitsVis' script is not there: install it with `pip install circuitsvis`"
        )
    return _alone(script.read_text(encoding="utf-8"))


def _alone(script: str) -> str:
    """A script without its source map, which would be looked for on disk."""
    return re.sub(r"(?m)^//# sourceMappingURL=.*$", "", script)
