"""A page and a file for any results."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from mechnum.report import trace
from mechnum.report.beliefs import beliefs_page
from mechnum.report.clock import clock_page
from mechnum.report.clock_pizza import clock_pizza_page
from mechnum.report.exports import write_netcdf
from mechnum.report.fourier import fourier_page
from mechnum.report.grokking import grokking_page
from mechnum.report.helix import helix_page
from mechnum.report.neurons import neurons_page
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


def page_of(results: xr.DataTree) -> Page:
    """The page that suits the results: a circuit's run, the rescue experiment, beliefs, neurons,
    probes, a clock, effects of nodes, path effects, a circuit, the helix, spectra, the Fourier
    lens, filters, a grokked net, clock or pizza, steering, similarities, a training run, or a
    trace."""
    if "steps" in results.children:
        return run_page(results, page_of)
    for group, page in _PAGES.items():
        if group in results.children:
            return page(results)
    return trace.build_page(results)


def save(results: xr.DataTree, folder: str | Path) -> tuple[Path, Path]:
    """Write `report.html` and `results.nc` into `folder`, each whole or not at all."""
    folder = Path(folder)
    return (
        page_of(results).save(folder / "report.html"),
        write_netcdf(results, folder / "results.nc"),
    )
