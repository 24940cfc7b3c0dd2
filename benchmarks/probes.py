"""The parametric sinusoidal probe beside scikit-learn's multinomial logistic regression.

Run `python benchmarks/probes.py [--threads N] [--iterations N]`. Both read the numbers 0–999 from
the same 20,000 states of width 576, which have ten circles of the number in them and noise, and are
scored on rows of numbers that they were fitted to and of numbers that they were not; a classifier
cannot read the latter at all. The closed-form probe stands beside them. Quote the ratios: the
seconds are this machine's, and where others use it the CPU seconds of all threads say more.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mechnum as mn
from mechnum.probes.regression import PERIODS

ROWS, NEW, WIDTH, UNITS, STEPS = 20_000, 2000, 576, 512, 3000


def states(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Circles of each period in orthogonal directions, and noise in all: [row, d], [row]."""
    generator = np.random.default_rng(0)
    numbers = np.tile(np.arange(1000), (ROWS + NEW) // 1000)
    angles = 2 * np.pi * numbers[:, None] / np.array(PERIODS)
    code = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    axes = np.linalg.qr(generator.normal(size=(WIDTH, code.shape[1])))[0].T
    noisy = code @ axes + noise * generator.normal(size=(len(numbers), WIDTH))
    return noisy.astype(np.float32), numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=50, help="of the logistic regression")
    parser.add_argument("--noise", type=float, default=0.2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    rows, numbers = states(options.noise)
    shown, heldout = mn.probes.value_split(numbers, (0.95, 0.05))
    # Each number has new rows as well.
    seen = shown[shown >= ROWS]
    fit = shown[shown < ROWS]
    everything = {"numbers": range(1000)}
    probes: dict[str, Any] = {
        f"ParamSin, H = {UNITS}, {STEPS} steps": mn.probes.ParamSinProbe(
            UNITS, steps=STEPS, patience=None, **everything
        ),
        "Fourier regression": mn.probes.FourierRegressionProbe(**everything),
        f"logistic regression, {options.iterations} iterations": make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=options.iterations)
        ),
    }
    print(f"{'probe':42} {'fit':>9} {'CPU':>9} {'seen numbers':>13} {'held-out numbers':>17}")
    for name, probe in probes.items():
        start, before = time.perf_counter(), time.process_time()
        probe.fit(rows[fit], numbers[fit])
        seconds, cpu = time.perf_counter() - start, time.process_time() - before
        shares = [probe.score(rows[part], numbers[part]) for part in (seen, heldout)]
        print(
            f"{name:42} {seconds:7.1f} s {cpu:7.1f} s {shares[0]:13.3f} {shares[1]:17.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
