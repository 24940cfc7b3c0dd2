"""Grokked modular addition: progress measures, clock versus pizza."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.grokking.alignment import disc_or_torus, phase_alignment
    from mechnum.grokking.circles import circularity, isolate_circles
    from mechnum.grokking.logits import (
        excluded_logits,
        key_part,
        key_share,
        logit_coefficients,
        logit_map,
        restricted_logits,
        sum_shares,
    )
    from mechnum.grokking.losses import excluded_loss, mean_loss, pair_losses, restricted_loss
    from mechnum.grokking.nets import EmbeddingNet, net_from_function, net_from_model, net_logits
    from mechnum.grokking.neurons import direction_shares, key_frequencies, neuron_frequencies
    from mechnum.grokking.pairs import neuron_maps
    from mechnum.grokking.phases import Phases, find_phases
    from mechnum.grokking.planes import circle_planes
    from mechnum.grokking.progress import phases_of, progress_measures, progress_over
    from mechnum.grokking.spectra import net_spectra
    from mechnum.grokking.symmetry import (
        distance_irrelevance,
        distance_map,
        gradient_symmetricity,
    )
    from mechnum.grokking.verdict import clock_or_pizza
    from mechnum.grokking.weights import fourier_gini, gini, numerical_rank, readout_residual

_HOMES = {
    "EmbeddingNet": "nets",
    "Phases": "phases",
    "circle_planes": "planes",
    "circularity": "circles",
    "clock_or_pizza": "verdict",
    "direction_shares": "neurons",
    "disc_or_torus": "alignment",
    "distance_irrelevance": "symmetry",
    "distance_map": "symmetry",
    "excluded_logits": "logits",
    "excluded_loss": "losses",
    "find_phases": "phases",
    "fourier_gini": "weights",
    "gini": "weights",
    "gradient_symmetricity": "symmetry",
    "isolate_circles": "circles",
    "key_frequencies": "neurons",
    "key_part": "logits",
    "key_share": "logits",
    "logit_coefficients": "logits",
    "logit_map": "logits",
    "mean_loss": "losses",
    "net_from_function": "nets",
    "net_from_model": "nets",
    "net_logits": "nets",
    "net_spectra": "spectra",
    "neuron_frequencies": "neurons",
    "neuron_maps": "pairs",
    "numerical_rank": "weights",
    "pair_losses": "losses",
    "phase_alignment": "alignment",
    "phases_of": "progress",
    "progress_measures": "progress",
    "progress_over": "progress",
    "readout_residual": "weights",
    "restricted_logits": "logits",
    "restricted_loss": "losses",
    "sum_shares": "logits",
}

__all__ = [
    "EmbeddingNet",
    "Phases",
    "circle_planes",
    "circularity",
    "clock_or_pizza",
    "direction_shares",
    "disc_or_torus",
    "distance_irrelevance",
    "distance_map",
    "excluded_logits",
    "excluded_loss",
    "find_phases",
    "fourier_gini",
    "gini",
    "gradient_symmetricity",
    "isolate_circles",
    "key_frequencies",
    "key_part",
    "key_share",
    "logit_coefficients",
    "logit_map",
    "mean_loss",
    "net_from_function",
    "net_from_model",
    "net_logits",
    "net_spectra",
    "neuron_frequencies",
    "neuron_maps",
    "numerical_rank",
    "pair_losses",
    "phase_alignment",
    "phases_of",
    "progress_measures",
    "progress_over",
    "readout_residual",
    "restricted_logits",
    "restricted_loss",
    "sum_shares",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
