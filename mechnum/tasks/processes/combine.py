"""Processes made of processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.linalg import block_diag

from mechnum.errors import MechnumError
from mechnum.tasks.processes.process import Process, distribution, from_matrices


def product(*processes: Process) -> Process:
    """Processes that run side by side and know nothing of each other.

    A token is one of each, the first process' slowest, and so is a state: beliefs are outer
    products of the processes' own (factored beliefs, arXiv 2602.02385).

    Raises:
        MechnumError: without processes.
    """
    if not processes:
        raise MechnumError("no processes to multiply: give one at least")
    return reduce(_pair, processes)


def mixture(processes: Sequence[Process], weights: Sequence[float] | None = None) -> Process:
    """One of the processes, drawn once before the first token; the observer has to find out which.

    Its chain has as many parts that never meet, so that its start is made of theirs.

    Args:
        processes: all with the same token names.
        weights: probability of each; equal ones without them.

    Raises:
        MechnumError: without processes, on different tokens, on weights that are no distribution.
    """
    if not processes:
        raise MechnumError("no processes to mix: give one at least")
    odd = [own.name for own in processes if own.tokens != processes[0].tokens]
    if odd:
        raise MechnumError(
            f"{odd[0]} has other tokens than {processes[0].name}: mix processes of one alphabet"
        )
    size = len(processes)
    shares = distribution([1 / size] * size if weights is None else weights, size, "weights")
    matrices = [
        block_diag(*(own.matrices[token] for own in processes))
        for token in range(processes[0].n_tokens)
    ]
    return from_matrices(
        np.array(matrices),
        " | ".join(own.name for own in processes),
        processes[0].tokens,
        [f"{index}:{state}" for index, own in enumerate(processes) for state in own.states],
        np.concatenate([share * own.start for share, own in zip(shares, processes, strict=True)]),
    )


def _pair(first: Process, second: Process) -> Process:
    matrices = np.array(
        [np.kron(one, other) for one in first.matrices for other in second.matrices]
    )
    return from_matrices(
        matrices,
        f"{first.name} × {second.name}",
        [f"{one},{other}" for one in first.tokens for other in second.tokens],
        [f"{one},{other}" for one in first.states for other in second.states],
        np.kron(first.start, second.start),
    )
