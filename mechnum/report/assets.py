"""Scripts that a page carries inside itself, so that it opens from disk without a network."""

from __future__ import annotations

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


def style() -> str:
    """The page's style sheet."""
    return (TEMPLATES / "page.css").read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """The plotly.js that the installed plotly package carries."""
    from plotly.offline import get_plotlyjs

    return _inline(get_plotlyjs())


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
    return _inline(script.read_text(encoding="utf-8"))


def _inline(script: str) -> str:
    # `</script` would end the element it stands in, and a source map would be looked for on disk.
    script = re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)
    return re.sub(r"(?m)^//# sourceMappingURL=.*$", "", script)
