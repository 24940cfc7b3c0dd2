"""A page and a file for any results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report import trace
from mechnum.report.beliefs import beliefs_page
from mechnum.report.clock import clock_page
from mechnum.report.clock_pizza import clock_pizza_page
from mechnum.report.exports import write_netcdf
from mechnum.report.fourier import fourier_page
from mechnum.report.grokking import grokking_page
from mechnum.report.helix import helix_page
from mechnum.report.neurons import neurons_page
from mechnum.report.other import other_page
from mechnum.report.page import Page
from mechnum.report.patching import circuit_page, edges_page, nodes_page
from mechnum.report.probe import probe_page
from mechnum.report.rescue import rescue_page
from mechnum.report.run import run_page
from mechnum.report.similarity import similarity_page
from mechnum.report.steering import steering_page
from mechnum.report.training import training_page
from mechnum.report.waves import filter_page, lens_page

# The first that is there decides: a clock has a circuit too, a grokked net its
# training, and a rescue a lens and filters.
_PAGES = {
    "rescue": rescue_page,
    "mixed_states": beliefs_page,
    "neurons": neurons_page,
    "probes": probe_page,
    "task_probes": probe_page,
    "ordinals": probe_page,
    "clock": clock_page,
    "nodes": nodes_page,
    "edges": edges_page,
    "circuit": circuit_page,
    "ablation": helix_page,
    "spectrum": fourier_page,
    "lens": lens_page,
    "filters": filter_page,
    "progress": grokking_page,
    "verdict": clock_pizza_page,
    "steering": steering_page,
    "pairs": similarity_page,
    "training": training_page,
}
_OF_A_TRACE = {"prompts", "errors", "effects", "helix", "attention"}


def page_of(results: xr.DataTree) -> Page:
    """The page that suits the results: a circuit's run, the rescue experiment, beliefs, neurons,
    probes, a clock, effects of nodes, path effects, a circuit, the helix, spectra, the Fourier
    lens, filters, a grokked net, clock or pizza, steering, similarities, a training run, a trace,
    or tables of whatever there is.

    Raises:
        MechnumError: a group has the name of a measurement of ours, and not what that gives.
    """
    if "steps" in results.children:
        return _built("steps", lambda: run_page(results, page_of))
    for group, page in _PAGES.items():
        if group in results.children:
            return _built(group, lambda page=page: page(results))
    if results.children and set(results.children) <= _OF_A_TRACE:
        return _built("trace", lambda: trace.build_page(results))
    return other_page(results)


def _built(group: str, page: Callable[[], Page]) -> Page:
    try:
        return page()
    except (KeyError, ValueError, AttributeError) as error:
        reason = " ".join(str(error.args[0] if error.args else error).split())
        raise MechnumError(
            f"the group {group!r} of these results is not what mechnum measures under this name "
            f"({reason}): give results of one measurement as they were written, or name the group "
            "otherwise"
        ) from error


def save(results: xr.DataTree, folder: str | Path) -> tuple[Path, Path]:
    """Write `report.html` and `results.nc` into `folder`, each whole or not at all.

    The results are written first: they took the time.
    """
    folder = Path(folder)
    data = write_netcdf(results, folder / "results.nc")
    return page_of(results).save(folder / "report.html"), data
