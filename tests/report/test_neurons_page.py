"""The neuron report shows what was measured, and its files hold it with all digits."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

from mechnum.report import neuron_frame, neurons_summary, write_tables
from mechnum.report.blocks import Figure, Table
from mechnum.report.exports import read_netcdf
from mechnum.report.neuron_frames import (
    accuracy_frame,
    kind_frame,
    layer_frame,
    neuron_maps,
    period_counts,
    shown_frame,
)
from mechnum.report.saving import page_of, save
from tests.neurons.measured import SIZE, TOP, small_report

pytestmark = pytest.mark.slow  # One measurement of neurons takes a while.


@pytest.fixture(scope="module")
def found() -> xr.DataTree:
    return small_report()


def blocks(results: xr.DataTree, kind: type) -> dict:
    page = page_of(results)
    return {b.title: b for section in page.sections for b in section.blocks if isinstance(b, kind)}


def test_the_table_has_a_row_and_a_map_for_each_neuron(found):
    table = blocks(found, Table)["Neurons"]
    assert len(table.frame) == len(table.maps.names) == TOP
    wanted = {"layer", "neuron", "total", "q", "direct", "fit", "T_in", "T_out", "heuristics"}
    assert wanted <= set(table.frame)
    np.testing.assert_array_equal(table.frame["total"], found["neurons"]["total"])


def test_maps_are_the_activations_over_a_and_b(found):
    maps = neuron_maps(found)
    own = found["maps"].to_dataset()
    assert maps.titles == ("b", "a")
    for a, b in ((0, 0), (3, SIZE - 2), (SIZE - 1, 5)):
        at = (own["a"] == a) & (own["b"] == b)
        for view, name in (("activation", "activation"), ("pre-activation", "pre")):
            drawn = maps.views[view][:, maps.y.index(a), maps.x.index(b)]
            np.testing.assert_allclose(drawn, own[name].values[:, at.values][:, 0])
    assert maps.views["activation"].shape == (TOP, SIZE, SIZE)


def test_prompts_that_are_not_there_are_gaps(found):
    """As with sums of at most 9."""
    few = found.copy()
    own = found["maps"].to_dataset()
    few["maps"] = xr.DataTree(own.isel(prompt=(own["answer"] < SIZE).values))
    drawn = neuron_maps(few).views["activation"][0]
    assert np.isnan(drawn[SIZE - 1, SIZE - 1])
    assert np.isfinite(drawn[0]).all()


def test_files_hold_every_column_with_all_digits(found, tmp_path):
    frame = neuron_frame(found)
    paths = write_tables(found, tmp_path)
    assert [path.name for path in paths] == ["neurons.csv", "neurons.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet(paths[1]), frame, check_dtype=False)
    with paths[0].open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    assert names == list(frame)
    at = names.index("total")
    assert [float(row[at]) for row in rows] == frame["total"].tolist()


def test_curves_layers_kinds_and_periods_are_the_measured_numbers(found):
    curves = accuracy_frame(found)
    kept = found["kept"].to_dataset()
    own = curves[curves["curve"] == "kept as they are"]
    np.testing.assert_array_equal(own["accuracy"], kept["accuracy"].sel(order="given"))
    drawn = kept["accuracy"].sel(order=[n for n in kept["order"].values if n != "given"])
    random = curves[curves["curve"] == "random neurons kept"]
    np.testing.assert_allclose(random["accuracy"], drawn.mean("order"))
    assert layer_frame(found)["estimate"].sum() == pytest.approx(1)
    match = found["heuristics"]["match"]
    kinds = kind_frame(found).set_index("kind")["neurons"]
    assert kinds["any"] == int(match.any("kind").sum())
    assert kinds["range"] == int(match.sel(kind="range").sum())
    assert period_counts(found).to_numpy().sum() == int(found["periods"]["count"].sum())


def test_every_figure_has_a_caption_with_its_numbers(found):
    figures = blocks(found, Figure)
    expected = {"The best 1 % of neurons by layer", "Accuracy with the best neurons alone"}
    expected |= {"How well waves fit", "Periods read and written", "Neurons by kind of heuristic"}
    expected |= {"Without the neurons of a heuristic", "Which description predicts better"}
    assert expected <= set(figures)
    for title, figure in figures.items():
        assert figure.caption.n, title
        assert figure.caption.estimand or figure.caption.null, title
        assert len(figure.data), title


def test_the_summary_names_the_first_neurons(found):
    console = Console(width=200, record=True)
    console.print(neurons_summary(found, 3))
    text = console.export_text()
    frame = shown_frame(found)
    for row in frame.head(3).to_dict("records"):
        assert f"{row['layer']}.{row['neuron']}" in text
        assert row["fit"][:12] in text
    assert "The first 3 of 8" in text


def test_a_page_from_the_file_is_the_page_of_the_results(found, tmp_path):
    """Results read back from netCDF draw the same page."""
    _, data = save(found, tmp_path)
    again = page_of(read_netcdf(data)).html()
    assert again == page_of(found).html()
