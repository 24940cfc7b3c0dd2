"""Reports: figures, HTML pages, the summary on the terminal, and files of results.

Everything here takes results (xarray, pandas, plain data), never models.
"""

from __future__ import annotations

from mechnum.lazy import lazy_names

_WHERE = {
    "Attention": "blocks",
    "Caption": "blocks",
    "Facts": "blocks",
    "Figure": "blocks",
    "Page": "page",
    "Section": "page",
    "Table": "blocks",
    "Text": "blocks",
    "Tokens": "blocks",
    "beliefs_page": "beliefs",
    "beliefs_summary": "beliefs",
    "circuit_summary": "largest",
    "clock_pizza_page": "clock_pizza",
    "clock_pizza_summary": "clock_pizza",
    "clock_summary": "clock_terminal",
    "edge_frame": "measured",
    "effect_frame": "frames",
    "filter_summary": "waves",
    "lens_summary": "waves",
    "grokking_page": "grokking",
    "grokking_summary": "grokking",
    "helix_page": "helix",
    "helix_summary": "helix",
    "mean_interval": "intervals",
    "neuron_frame": "neuron_frames",
    "neurons_page": "neurons",
    "neurons_summary": "neurons",
    "node_frame": "measured",
    "page_of": "saving",
    "probe_page": "probe",
    "probe_summary": "probe",
    "ranking": "largest",
    "read_netcdf": "exports",
    "rescue_page": "rescue",
    "rescue_summary": "rescue",
    "residue_frame": "spectra",
    "run_summary": "run",
    "save": "saving",
    "score_frame": "frames",
    "similarity_page": "similarity",
    "similarity_summary": "similarity",
    "spectra_summary": "largest_spectra",
    "spectrum_frame": "spectra",
    "steering_page": "steering",
    "steering_summary": "steering",
    "strongest_frame": "spectra",
    "summary_frame": "summary",
    "trace_page": "trace",
    "trace_summary": "summary",
    "write_csv": "exports",
    "write_json": "exports",
    "write_netcdf": "exports",
    "write_parquet": "exports",
    "write_tables": "neurons",
}

__all__ = sorted(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy_names(__name__, _WHERE)
