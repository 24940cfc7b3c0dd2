"""Beliefs of hidden Markov processes beside a plain NumPy loop and, where it is installed, JAX.

Run `python benchmarks/beliefs.py [--strings N] [--sample N]`. The loop does what one would write
down first, one string or one node after the other; of its strings `--sample` are run and the time
is multiplied. JAX gets the same algebra, jitted, in float64; its compilation is not counted. Quote
the ratios: the seconds are this machine's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mechnum.tasks.processes import Process, mess3, mixed_state_tree, rrxor

LENGTH = 10


def seconds(action: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """Median time and the last result."""
    times = []
    result = None
    for _ in range(runs):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def show(work: str, ours: float, name: str, theirs: float, agreement: str) -> None:
    print(
        f"{work:44} {theirs / ours:8.1f}x {ours:8.3f} s   {name:10} {theirs:9.3f} s   {agreement}"
    )


def largest(difference: np.ndarray) -> str:
    return f"largest difference {np.abs(difference).max():.1e}"


def looped_beliefs(process: Process, strings: np.ndarray) -> np.ndarray:
    """One string and one token after the other."""
    beliefs = np.empty((len(strings), strings.shape[1] + 1, process.n_states))
    for row, string in enumerate(strings):
        belief = beliefs[row, 0] = process.start
        for position, token in enumerate(string):
            joint = belief @ process.matrices[token]
            belief = beliefs[row, position + 1] = joint / joint.sum()
    return beliefs


def looped_tree(process: Process, depth: int) -> dict[tuple[float, ...], int]:
    """Distinct beliefs, rounded, and the depth of each; one string after the other."""
    found: dict[tuple[float, ...], int] = {}
    queue = [(process.start, 0)]
    for belief, below in queue:
        found.setdefault(tuple((belief + 0.0).round(8)), below)
        if below < depth:
            for matrix in process.matrices:
                joint = belief @ matrix
                if joint.sum() > 0:
                    queue.append((joint / joint.sum(), below + 1))
    return found


def jitted(process: Process) -> Callable[[np.ndarray], Any] | None:
    """The same updates as one scan over positions; None without JAX."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    matrices = jax.numpy.asarray(process.matrices)
    start = jax.numpy.asarray(process.start)

    @jax.jit
    def run(strings: Any) -> Any:
        def step(beliefs: Any, tokens: Any) -> Any:
            joint = jax.numpy.einsum("ns,nst->nt", beliefs, matrices[tokens])
            after = joint / joint.sum(-1, keepdims=True)
            return after, after

        first = jax.numpy.broadcast_to(start, (len(strings), len(start)))
        rest = jax.lax.scan(step, first, strings.T)[1]
        return jax.numpy.concatenate([first[None], rest]).swapaxes(0, 1)

    return lambda strings: run(strings).block_until_ready()


def updates(process: Process, n_strings: int, sample: int) -> None:
    strings = process.sample(n_strings, LENGTH, seed=0)
    work = f"{process.name}: {n_strings:,} strings of {LENGTH}"
    ours, beliefs = seconds(lambda: process.beliefs(strings))
    loop, expected = seconds(lambda: looped_beliefs(process, strings[:sample]), runs=1)
    show(
        work,
        ours,
        "NumPy loop",
        loop * n_strings / sample,
        largest(beliefs[:sample] - expected),
    )
    if (run := jitted(process)) is None:
        print("JAX is not installed: not compared with it")
        return
    run(strings)
    theirs, found = seconds(lambda: run(strings))
    show(work, ours, "JAX", theirs, largest(beliefs - np.asarray(found)))


def trees(process: Process, depth: int) -> None:
    ours, tree = seconds(lambda: mixed_state_tree(process, depth))
    theirs, found = seconds(lambda: looped_tree(process, depth), runs=1)
    own = {tuple(row) for row in (tree.belief.values + 0.0).round(8)}
    work = f"{process.name}: {int(tree.strings.sum()):,} strings to depth {depth}"
    agreement = f"beliefs of one alone: {len(own ^ found.keys())} of {len(own)}"
    show(work, ours, "NumPy loop", theirs, agreement)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strings", type=int, default=1_000_000)
    parser.add_argument("--sample", type=int, default=2_000)
    options = parser.parse_args()
    print(f"{'work':44} {'ratio':>9} {'ours':>10}   other")
    for process in (mess3(), rrxor()):
        updates(process, options.strings, min(options.sample, options.strings))
    trees(rrxor(), 18)
    trees(mess3(), 9)


if __name__ == "__main__":
    main()
