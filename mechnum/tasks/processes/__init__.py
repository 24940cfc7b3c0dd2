"""Hidden Markov processes: strings of tokens whose past says something about what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.tasks.processes.addition import carry, carry_base, carry_readout
    from mechnum.tasks.processes.combine import mixture, product
    from mechnum.tasks.processes.entropy import EntropyRate, entropy_rate, myopic_entropy
    from mechnum.tasks.processes.files import find_process, read_process
    from mechnum.tasks.processes.library import even, golden_mean, iid, mess3, rrxor, visible, z1r
    from mechnum.tasks.processes.process import Process, from_matrices
    from mechnum.tasks.processes.tree import mixed_state_tree

_HOMES = {
    "EntropyRate": "entropy",
    "Process": "process",
    "carry": "addition",
    "carry_base": "addition",
    "carry_readout": "addition",
    "entropy_rate": "entropy",
    "even": "library",
    "find_process": "files",
    "from_matrices": "process",
    "golden_mean": "library",
    "iid": "library",
    "mess3": "library",
    "mixed_state_tree": "tree",
    "mixture": "combine",
    "myopic_entropy": "entropy",
    "product": "combine",
    "read_process": "files",
    "rrxor": "library",
    "visible": "library",
    "z1r": "library",
}

__all__ = [
    "EntropyRate",
    "Process",
    "carry",
    "carry_base",
    "carry_readout",
    "entropy_rate",
    "even",
    "find_process",
    "from_matrices",
    "golden_mean",
    "iid",
    "mess3",
    "mixed_state_tree",
    "mixture",
    "myopic_entropy",
    "product",
    "read_process",
    "rrxor",
    "visible",
    "z1r",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
