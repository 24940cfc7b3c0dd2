"""Fits of all neurons of a model beside least squares of other libraries, in one run.

Run `python benchmarks/neurons.py [--threads N] [--neurons N]`. 46,080 neurons (as many as SmolLM2
has) over 100 × 100 operand pairs, as float32 values and the same columns for all. The libraries fit
once and score nothing; ours also holds out five folds and scores them. Each runs in a process of
its own, so that its peak memory is its own; it counts what the process grows by beyond the values.
Of the gradient descent a few epochs of one neuron are run and multiplied. Quote the ratios: the
seconds are this machine's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

PERIODS = (2, 5, 10, 100)
EPOCHS = 2500  # of Kantamneni & Tegmark 2025, for each neuron
SAMPLED_EPOCHS = 100

Coefficients = np.ndarray


def operand_pairs() -> np.ndarray:
    """[10,000, 2]."""
    return np.stack(np.divmod(np.arange(10_000), 100), axis=1).astype(np.float64)


def columns() -> np.ndarray:
    """Constant, linear terms and waves, without the sines of T = 2, which are zero."""
    a, b = operand_pairs().T
    found = [np.ones(len(a)), (a - 49.5) / 49.5, (b - 49.5) / 49.5]
    for t in (a, b, a + b):
        for period in PERIODS:
            angle = 2 * np.pi * t / period
            found += [np.cos(angle)] if period == 2 else [np.cos(angle), np.sin(angle)]
    return np.stack(found, axis=1)


def write_values(n_neurons: int, folder: Path) -> None:
    """Sums of the columns and noise, in float32 as models compute them, into a file."""
    matrix = columns()
    generator = np.random.default_rng(0)
    found = np.empty((len(matrix), n_neurons), dtype=np.float32)
    for start in range(0, n_neurons, 2048):
        part = slice(start, min(start + 2048, n_neurons))
        weights = generator.normal(size=(matrix.shape[1], part.stop - start))
        found[:, part] = matrix @ weights + generator.normal(size=(len(matrix), part.stop - start))
    np.save(folder / "values.npy", found)


def ours(table: np.ndarray) -> Coefficients:
    """Coefficients of `columns`, from amplitudes and phases."""
    from mechnum.neurons import fit_values

    found = fit_values(table, operand_pairs(), PERIODS)
    rows = [found["intercept"].values, *found["slope"].values.T]
    amplitude, phase = found["amplitude"].values, found["phase"].values
    for variable in range(3):
        for index, period in enumerate(PERIODS):
            size, angle = amplitude[:, variable, index], phase[:, variable, index]
            rows.append(size * np.cos(angle))
            if period != 2:
                rows.append(size * np.sin(angle))
    return np.stack(rows)


def numpy_lstsq(table: np.ndarray) -> Coefficients:
    """LAPACK's gelsd on all right-hand sides."""
    return np.linalg.lstsq(columns(), table, rcond=None)[0]


def scipy_lstsq(table: np.ndarray) -> Coefficients:
    """LAPACK's gelsy, the fastest of its least squares."""
    from scipy.linalg import lstsq

    return lstsq(columns(), table, lapack_driver="gelsy", check_finite=False)[0]


def scikit_learn(table: np.ndarray) -> Coefficients:
    """LinearRegression on the same matrix."""
    from sklearn.linear_model import LinearRegression

    matrix = columns()
    found = LinearRegression().fit(matrix[:, 1:], table)
    return np.concatenate([found.intercept_[None], found.coef_.T])


METHODS: dict[str, Callable[[np.ndarray], Coefficients]] = {
    "mechnum, with five folds and scores": ours,
    "scipy.linalg.lstsq (gelsy)": scipy_lstsq,
    "numpy.linalg.lstsq (gelsd)": numpy_lstsq,
    "scikit-learn LinearRegression": scikit_learn,
}


def measured(name: str, folder: Path, threads: int) -> tuple[float, float]:
    """Seconds, and MiB that the process grew by; coefficients go to a file."""
    table = np.load(folder / "values.npy")
    method = METHODS[name]
    with threadpool_limits(threads):
        method(table[:, :64])  # imports and first calls
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        found = method(table)
        took = time.perf_counter() - start
    grew = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    np.save(folder / "found.npy", found)
    return took, grew / 1024


def descent_seconds(target: np.ndarray, threads: int) -> float:
    """One neuron by SGD on amplitudes and shifts, all prompts a step, cosine annealing."""
    torch.set_num_threads(threads)
    a, b = torch.from_numpy(operand_pairs().T).float()
    linear = torch.stack([a, b, a + b]) / 49.5 - 1
    angles = torch.stack([2 * torch.pi * t / period for t in (a, b, a + b) for period in PERIODS])
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.randn(n, 1, generator=generator).requires_grad_() for n in (3, 12, 12, 1)]
    slope, size, shift, bias = parameters
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    wanted = torch.from_numpy(target)
    start = time.perf_counter()
    for _ in range(SAMPLED_EPOCHS):
        optimizer.zero_grad()
        said = (slope * linear).sum(0) + (size * torch.cos(angles - shift)).sum(0) + bias[0]
        ((said - wanted) ** 2).mean().backward()
        optimizer.step()
        schedule.step()
    return (time.perf_counter() - start) * EPOCHS / SAMPLED_EPOCHS


def compare(n_neurons: int, threads: int) -> None:
    print(f"{n_neurons} neurons, 10,000 operand pairs, {columns().shape[1]} columns\n")
    print(f"{'method':38} {'seconds':>9} {'ratio':>10} {'peak MiB':>9}   largest difference")
    context: Any = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Not in this process: its largest size so far would be its children's.
        with context.Pool(1) as pool:
            pool.apply(write_values, (n_neurons, folder))
        one = np.load(folder / "values.npy", mmap_mode="r")[:, 0].copy()
        reference, base = None, 0.0
        for method in METHODS:
            with context.Pool(1) as pool:
                took, grew = pool.apply(measured, (method, folder, threads))
            found = np.load(folder / "found.npy")
            if reference is None:
                reference, base = found, took
            difference = np.abs(found - reference).max()
            print(f"{method:38} {took:9.2f} {took / base:9.1f}x {grew:9.0f}   {difference:.1e}")
    descent = descent_seconds(one, threads)
    whole = descent * n_neurons
    print(f"{'gradient descent, one neuron':38} {descent:9.2f} {descent / base:9.1f}x")
    print(f"{'gradient descent, all (extrapolated)':38} {whole:9.0f} {whole / base:9.0f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--neurons", type=int, default=46_080)
    options = parser.parse_args()
    compare(options.neurons, options.threads)


if __name__ == "__main__":
    main()
