"""The instruments: each measures a model with several of the package's tools, and gives one tree of
results that `mechnum.report` draws as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.circuits.instruments.beliefs import measure_beliefs, measure_process
    from mechnum.circuits.instruments.clock_pizza import measure_clock_pizza
    from mechnum.circuits.instruments.filters import measure_filters
    from mechnum.circuits.instruments.grokking import measure_grokking
    from mechnum.circuits.instruments.helix import measure_helix
    from mechnum.circuits.instruments.neurons import measure_neurons
    from mechnum.circuits.instruments.probe import measure_numbers
    from mechnum.circuits.instruments.probe_ordinals import measure_ordinals
    from mechnum.circuits.instruments.probe_task import measure_task
    from mechnum.circuits.instruments.rescue import measure_rescue, rescue_recipes, train_rescue
    from mechnum.circuits.instruments.search import find_circuit
    from mechnum.circuits.instruments.similarity import Chosen, measure_similarity
    from mechnum.circuits.instruments.steer import measure_steering

_HOMES = {
    "Chosen": "similarity",
    "find_circuit": "search",
    "measure_beliefs": "beliefs",
    "measure_clock_pizza": "clock_pizza",
    "measure_filters": "filters",
    "measure_grokking": "grokking",
    "measure_helix": "helix",
    "measure_neurons": "neurons",
    "measure_numbers": "probe",
    "measure_ordinals": "probe_ordinals",
    "measure_process": "beliefs",
    "measure_rescue": "rescue",
    "measure_similarity": "similarity",
    "measure_steering": "steer",
    "measure_task": "probe_task",
    "rescue_recipes": "rescue",
    "train_rescue": "rescue",
}

__all__ = [
    "Chosen",
    "find_circuit",
    "measure_beliefs",
    "measure_clock_pizza",
    "measure_filters",
    "measure_grokking",
    "measure_helix",
    "measure_neurons",
    "measure_numbers",
    "measure_ordinals",
    "measure_process",
    "measure_rescue",
    "measure_similarity",
    "measure_steering",
    "measure_task",
    "rescue_recipes",
    "train_rescue",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
