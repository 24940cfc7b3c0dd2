"""Runs notebooks, compares what they print with the outputs that they hold, and writes these.

A notebook is kept with its outputs, so that it can be read where nothing runs: figures as SVG,
drawn by plotly.js in a headless Chromium. `python -m docs.tools.notebooks NOTEBOOK ...` runs
notebooks and writes their outputs into them.
"""

from __future__ import annotations

import doctest
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from plotly.offline import get_plotlyjs

from docs.tools.browser import Browser, find_chromium

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PLOTLY, SVG = "application/vnd.plotly.v1+json", "image/svg+xml"

_KERNEL = {
    # Figures come as data, which are drawn afterwards or left alone.
    "PLOTLY_RENDERER": "plotly_mimetype",
    # tqdm's, where ipywidgets is not installed.
    "PYTHONWARNINGS": "ignore:IProgress not found",
    # The tensors are small: more threads are slower, by far where other programs run besides.
    "OMP_NUM_THREADS": "1",
}
# The width of a cell's output in JupyterLab and on GitHub, about.
_WIDTH = 900
_SECONDS = 300
_SAME = doctest.OutputChecker()
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# plotly.js names parts of a drawing at random. With a generator of its own (mulberry32), seeded by
# the figure, names are the same each time, and not those of another drawing on the page.
_SEEDED = """(seed => {
    Math.random = () => {
        seed = (seed + 0x6D2B79F5) | 0;
        let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
})"""


class NotebookError(AssertionError):
    """A notebook holds something else than its cells print."""


def run(path: Path) -> NotebookNode:
    """The notebook with new outputs, run from its first cell on in a new folder.

    Raises:
        CellExecutionError: where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, _KERNEL):
        resources = {"metadata": {"path": folder}}
        # What a cell prints is one output, however many pieces it arrives in.
        NotebookClient(
            notebook,
            timeout=_SECONDS,
            resources=resources,
            record_timing=False,
            coalesce_streams=True,
        ).execute()
    return notebook


def check(path: Path) -> None:
    """Runs a notebook.

    Raises:
        NotebookError: where a cell prints something else than the notebook holds, or shows another
            number of figures; what is in the figures is not compared.
    """
    kept, new = nbformat.read(path, as_version=4), run(path)
    for number, (old, cell) in enumerate(zip(kept.cells, new.cells, strict=True)):
        shown, printed = _said(old), _said(cell)
        if not _SAME.check_output(shown, printed, _FLAGS):
            raise NotebookError(
                f"{path}, cell {number} holds\n{shown}\nbut its code prints\n{printed}\n"
                "`make notebooks` writes the new outputs"
            )


def write(path: Path) -> None:
    """Runs a notebook and writes its outputs into it, without what differs from run to run."""
    notebook = run(path)
    _draw(notebook)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", NotebookNode()
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def _said(cell: NotebookNode) -> str:
    """What a cell printed, in plain text, with a line for each figure."""
    parts = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            parts.append(output.text)
        elif {PLOTLY, SVG} & set(output.data):
            parts.append("[figure]")
        else:
            parts.append(output.data.get("text/plain", ""))
    return "\n".join(part.strip("\n") for part in parts) + "\n"


def _draw(notebook: NotebookNode) -> None:
    """Puts drawings in the place of plotly's data."""
    figures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if PLOTLY in output.get("data", ())
    ]
    for output, drawing in zip(figures, _drawings([o.data[PLOTLY] for o in figures]), strict=True):
        output.data = nbformat.from_dict({SVG: drawing, "text/plain": "A figure"})


def _drawings(figures: list[Any]) -> Iterator[str]:
    program = find_chromium()
    if program is None:
        raise SystemExit("no Chromium here, which draws the figures: `apt-get install chromium`")
    with Browser(program) as browser:
        browser.run(f"{get_plotlyjs()}\n;0")
        for figure in figures:
            height = figure["layout"].get("height", 400)
            options = {"format": "svg", "imageDataOnly": True, "width": _WIDTH, "height": height}
            content = json.dumps(figure)
            seed = int(hashlib.sha256(content.encode()).hexdigest()[:8], 16)
            drawn = browser.run(
                f"{_SEEDED}({seed}), Plotly.toImage({content}, {json.dumps(options)})"
            )
            yield drawn.replace('style=""', 'style="max-width: 100%; height: auto"', 1)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name).resolve())
