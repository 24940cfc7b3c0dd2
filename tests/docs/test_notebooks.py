"""The notebooks hold what their cells print, and ask for nothing outside themselves."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("nbconvert")

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbclient.exceptions import CellExecutionError
from nbformat import v4

from docs.tools.browser import find_chromium
from docs.tools.notebook_pages import notebook_page
from docs.tools.notebooks import NOTEBOOKS, SVG, NotebookError, check, write

ROOT = Path(__file__).parents[2]
# Names of the language of SVG, which nothing is fetched from.
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/)")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_the_notebook_holds(path):
    check(path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_whole_and_small(path):
    """With pictures, without warnings and errors, and with the cell that Colab needs."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    pictures = [output.data[SVG] for output in outputs if SVG in output.get("data", ())]
    assert "%pip install" in code[0].source
    assert not code[0].outputs
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert {output.output_type for output in outputs} <= {
        "stream", "display_data", "execute_result",
    }  # fmt: skip
    assert "stderr" not in {output.get("name") for output in outputs}
    assert pictures
    assert not any(ELSEWHERE.search(picture) for picture in pictures)
    assert 10 <= len(notebook.cells) <= 26
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("missing", [True, False])
def test_the_first_cell_installs_the_folder_above_where_it_is_missing(missing, monkeypatch):
    """No package index has mechnum, so that its bare name could be anything there."""
    cells = [nbformat.read(path, as_version=4).cells for path in NOTEBOOKS]
    (source,) = {next(c.source for c in own if c.cell_type == "code") for own in cells}
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None if missing else "found")
    run, names = [], {}
    names["get_ipython"] = lambda: SimpleNamespace(run_line_magic=lambda *line: run.append(line))
    exec(TransformerManager().transform_cell(source), names)
    assert run == ([("pip", "install --quiet {source}")] if missing else [])
    assert not missing or (Path(names["source"]) / "pyproject.toml").is_file()


def test_every_notebook_is_listed():
    listed = (ROOT / "docs" / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\((\w+)\.html\)", listed) == [path.stem for path in NOTEBOOKS]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_of_a_notebook_needs_nothing_else(path, tmp_path, chromium):
    """In a browser without a network: no request, no complaint, every figure drawn, all links."""
    for other in NOTEBOOKS:
        (tmp_path / f"{other.stem}.html").touch()
    page = tmp_path / f"{path.stem}.html"
    page.write_text(notebook_page(path), encoding="utf-8")
    chromium.open(page)
    assert chromium.requests == [page.as_uri()]
    assert chromium.complaints == []
    assert chromium.run("document.images.length") > 0
    assert chromium.run("[...document.images].every(image => image.naturalWidth > 100)")
    assert chromium.run("document.documentElement.scrollWidth <= innerWidth")
    links = chromium.run("[...document.links].map(link => link.href)")
    near = [link.partition("#")[0] for link in links if link.startswith("file:")]
    assert all(Path(link.removeprefix("file://")).is_file() for link in near)


@pytest.mark.slow
def test_other_output_is_found_and_can_be_written(tmp_path):
    """A notebook that shows something else fails, and is right after it was written."""
    path = tmp_path / "small.ipynb"
    shown = v4.new_output("stream", text="3\n")
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("print(1 + 1)", outputs=[shown])]), path)
    with pytest.raises(NotebookError, match="holds\n3"):
        check(path)
    write(path)
    first = path.read_text()
    check(path)
    write(path)
    assert path.read_text() == first


@pytest.mark.slow
def test_what_a_cell_prints_is_one_output(tmp_path):
    """However many pieces it arrives in, which differs from run to run."""
    path = tmp_path / "small.ipynb"
    source = "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.5)"
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(source)]), path)
    write(path)
    (output,) = nbformat.read(path, as_version=4).cells[0].outputs
    assert output.text == "0\n1\n2\n"


@pytest.mark.slow
def test_a_figure_is_drawn_the_same_each_time(tmp_path):
    """Also its lines and patterns, which plotly.js names at random; two figures share no name."""
    if find_chromium() is None:
        pytest.skip("no Chromium here: `apt-get install chromium`")
    path = tmp_path / "small.ipynb"
    cells = [
        v4.new_code_cell(
            "import plotly.graph_objects as go\n"
            f"go.Figure([go.Scatter(y=[1, {top}]), go.Bar(y=[2, 1], marker_pattern_shape='/')])"
        )
        for top in (2, 3)
    ]
    nbformat.write(v4.new_notebook(cells=cells), path)
    write(path)
    first = path.read_text()
    write(path)
    assert path.read_text() == first
    drawings = [cell.outputs[0].data[SVG] for cell in nbformat.read(path, as_version=4).cells]
    names = [set(re.findall(r' id="([^"]+)"', drawing)) for drawing in drawings]
    assert all(names)
    assert names[0].isdisjoint(names[1])


@pytest.mark.slow
def test_a_cell_that_fails_fails(tmp_path):
    path = tmp_path / "small.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell("1 / 0")]), path)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        check(path)
