"""The spectra of one net over its numbers, side by side: weights, neurons and logits."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.fourier.grid import block_energy
from mechnum.fourier.spectra import power_by_frequency
from mechnum.grokking.logits import sum_shares
from mechnum.grokking.nets import modular_task, net_from_model
from mechnum.grokking.pairs import PairStates, pair_states, readout_rows
from mechnum.inputs import to_numpy
from mechnum.models.model import Model
from mechnum.tasks.arithmetic import ModularAddition


def net_spectra(
    model: Model,
    task: ModularAddition | None = None,
    layer: int = -1,
    states: PairStates | None = None,
) -> xr.Dataset:
    """How much of each part of a net every frequency has (Nanda et al. 2023, section 4.1).

    Args:
        task: what the model adds by, where it does not say so itself.
        layer: whose neurons and readout.
        states: what `mechnum.grokking.pairs.pair_states` gave for the layer, where it is known.

    Returns:
        `share` over (table, frequency), frequencies 1 … (p − 1)/2. Tables: "W_E", the embedding of
        numbers as a, and "W_L" = W_U · W_out over classes, shares of their power without the
        constant; "neurons", the mean over neurons of the share of each one's variance over pairs
        (`mn.fourier.block_energy`); "logits", the share of the logits' variance that is a wave of
        a + b. The last two leave out what is no wave of one frequency, so that they sum to less
        than 1. No "W_L" and "neurons" in a layer without an MLP.

    Raises:
        MechnumError: on a model without a modular task, on weights that are not finite, on a p that
            is no prime of 3 or more, and on a layer that does not exist.
    """
    task = modular_task(model, task)
    states = pair_states(model, task, layer) if states is None else states
    shares = {"W_E": power_by_frequency(to_numpy(net_from_model(model, task).embeddings_a))}
    readout = readout_rows(model, states.classes, layer)
    if readout is not None:
        shares["W_L"] = power_by_frequency(readout)
    if states.neurons.shape[2]:
        each = block_energy(states.neurons)
        varies = np.isfinite(each).all(axis=0)
        shares["neurons"] = each[:, varies].mean(axis=1) if varies.any() else each[:, 0]
    shares["logits"] = sum_shares(states.logits)
    return xr.Dataset(
        {"share": (("table", "frequency"), np.stack(list(shares.values())))},
        coords={"table": list(shares), "frequency": np.arange(1, task.p // 2 + 1)},
    )
