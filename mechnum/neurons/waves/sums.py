"""Least-squares fits of any number of neurons from one pass over the prompts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Float64, Int
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.stats import f as f_distribution
from scipy.stats import false_discovery_control

from mechnum.errors import InvalidInput
from mechnum.inputs import seed_sequence
from mechnum.models.memory import batches
from mechnum.neurons.waves.design import WaveDesign

FITTED, CONSTANT = "fitted", "constant"
# Neurons at a time: so few that their values in float64 stay in the cache.
_BLOCK = 512


class WaveFits:
    """Fits of many neurons to the same columns, from values that come in batches.

    Held are sums alone: for each neuron and fold the products of its values with the columns, and
    the sum of their squares. The columns are made orthonormal over all prompts, so that the fit is
    those products, and what each fold's fit needs is one small factorisation for all neurons.

    Args:
        design: the columns at every prompt.
        n_neurons: how many are fitted.
        folds: parts of the prompts of which each is predicted from the others.
        seed: of the folds.

    Raises:
        InvalidInput: as `WaveDesign.folds`, and on a seed that is none.
    """

    def __init__(self, design: WaveDesign, n_neurons: int, folds: int = 5, seed: int = 0) -> None:
        self.design = design
        self.n_neurons = n_neurons
        self._fold = design.folds(folds, seed_sequence(seed))
        self._n_folds, self._seed = folds, seed
        # The first column is the constant, and stays it.
        self._basis, self._triangle = np.linalg.qr(design.matrix)
        n_columns = self._basis.shape[1]
        self._products = np.zeros((folds, n_columns, n_neurons))
        self._squares = np.zeros((folds, n_neurons))
        self._low, self._high = np.full(n_neurons, np.inf), np.full(n_neurons, -np.inf)
        self._shift = np.zeros(n_neurons)
        self._count = np.zeros(n_neurons, dtype=np.int64)
        self._rounding = np.finfo(np.float64).eps

    def add(
        self,
        rows: Int[np.ndarray, " row"],
        values: Float[np.ndarray, "row neuron"],
        first: int = 0,
    ) -> None:
        """Values of neurons `first`, `first + 1`, ... at some of the prompts, each once.

        Raises:
            InvalidInput: on values that are not finite.
        """
        self._note_range(values, slice(first, first + values.shape[1]))
        folds = self._fold[rows]
        for fold in range(self._n_folds):
            held_out = np.flatnonzero(folds == fold)
            columns = self._basis[rows[held_out]].T
            for start in range(0, values.shape[1], _BLOCK):
                own = values[:, start : start + _BLOCK][held_out]
                at = slice(first + start, first + start + own.shape[1])
                # Without their offset, so that the sums of squares keep what differs.
                shifted = np.subtract(own, self._shift[at], dtype=np.float64)
                self._products[fold, :, at] += columns @ shifted
                self._squares[fold, at] += np.einsum("ij,ij->j", shifted, shifted)

    def _note_range(self, values: Float[np.ndarray, "row neuron"], at: slice) -> None:
        low, high = values.min(axis=0), values.max(axis=0)
        if not np.isfinite(high - low).all():
            bad = at.start + int(np.flatnonzero(~np.isfinite(high - low))[0])
            raise InvalidInput(
                f"values of neuron {bad} are not finite: load the model with dtype='float32'"
            )
        self._shift[at] = np.where(self._count[at] == 0, values[0], self._shift[at])
        self._low[at] = np.minimum(self._low[at], low)
        self._high[at] = np.maximum(self._high[at], high)
        self._count[at] += len(values)
        self._rounding = max(self._rounding, float(np.finfo(values.dtype).eps))

    def result(self) -> xr.Dataset:
        """The fits, over `neuron`; see `mechnum.neurons.fit`.

        Raises:
            InvalidInput: where a neuron lacks the values of some prompts.
        """
        n_prompts = len(self._fold)
        if (self._count != n_prompts).any():
            short = int(np.flatnonzero(self._count != n_prompts)[0])
            raise InvalidInput(
                f"neuron {short} has {self._count[short]} values for {n_prompts} prompts: add each "
                "prompt once"
            )
        n_columns = self._basis.shape[1]
        coefficients = np.empty((n_columns, self.n_neurons))
        total, left, held = (np.empty(self.n_neurons) for _ in range(3))
        held_out = [self._basis[self._fold == fold] for fold in range(self._n_folds)]
        grams = [rows.T @ rows for rows in held_out]
        factors = [cho_factor(np.eye(n_columns) - gram) for gram in grams]
        for part in batches(self.n_neurons, 8 * 8 * n_columns):
            products, squares = self._products[:, :, part], self._squares[:, part]
            whole, square = products.sum(axis=0), squares.sum(axis=0)
            total[part] = square - whole[0] ** 2
            left[part] = square - np.sum(whole**2, axis=0)
            coefficients[:, part] = solve_triangular(self._triangle, whole)
            held[part] = 0
            for fold, (gram, factor) in enumerate(zip(grams, factors, strict=True)):
                others = cho_solve(factor, whole - products[fold])
                held[part] += squares[fold] + np.sum(
                    others * (gram @ others - 2 * products[fold]), axis=0
                )
        coefficients[0] += self._shift
        scores = self._scores(total.clip(0), left.clip(0), held.clip(0))
        terms = _terms(self.design, coefficients)
        if "sum_share" in terms:
            # What a constant neuron's terms are shares of is rounding.
            varies = scores["status"][1] == FITTED
            terms["sum_share"] = ("neuron",), np.where(varies, terms["sum_share"][1], np.nan)
        return xr.Dataset(terms | scores, coords=self._coordinates(), attrs=self._said(scores))

    def _scores(
        self,
        total: Float64[np.ndarray, " neuron"],
        left: Float64[np.ndarray, " neuron"],
        held: Float64[np.ndarray, " neuron"],
    ) -> dict[str, Any]:
        n, n_columns = self._basis.shape
        spread = self._high - self._low
        largest = np.maximum(np.abs(self._low), np.abs(self._high))
        varies = spread > 8 * self._rounding * largest

        def where_varying(values: np.ndarray) -> tuple[str, np.ndarray]:
            return "neuron", np.where(varies, values, np.nan)

        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = ((total - left) / (n_columns - 1)) / (left / (n - n_columns))
            p = np.where(varies, f_distribution.sf(ratio, n_columns - 1, n - n_columns), 1.0)
            q = np.ones_like(p)
            if varies.any():
                q[varies] = false_discovery_control(p[varies], method="bh")
            return {
                "r2": where_varying(1 - held / total),
                "r2_fitted": where_varying(1 - left / total),
                "nrmse": where_varying(np.sqrt(held / n) / spread),
                "nrmse_fitted": where_varying(np.sqrt(left / n) / spread),
                "p": ("neuron", p),
                "q": ("neuron", q),
                "status": ("neuron", np.where(varies, FITTED, CONSTANT)),
            }

    def _coordinates(self) -> dict[str, Any]:
        design = self.design
        coords: dict[str, Any] = {
            "neuron": np.arange(self.n_neurons),
            "variable": list(design.variables),
            "period": np.array(design.periods),
        }
        if design.linear:
            coords["linear"] = list(design.operands)
            coords["centre"] = ("linear", design.centre)
            coords["half_range"] = ("linear", design.half_range)
        return coords

    def _said(self, scores: dict[str, Any]) -> dict[str, str | int]:
        n_tested = int((scores["status"][1] == FITTED).sum())
        return {
            "operands": ", ".join(self.design.operands),
            "dropped": "; ".join(self.design.dropped),
            "folds": self._n_folds,
            "seed": self._seed,
            "null": "F-test of all terms against a constant, residuals independent and Gaussian",
            "n_tested": n_tested,
            "q_over": f"Benjamini-Hochberg over the {n_tested} neurons that vary",
            "slope_unit": "activation for an operand rescaled to -1 ... 1 over its range",
            "sum_share_of": "squared slopes and amplitudes of all terms but the constant",
        }


def _terms(
    design: WaveDesign, coefficients: Float64[np.ndarray, "kept neuron"]
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Intercept, slopes, amplitudes and phases from the coefficients of the columns."""
    every = np.zeros((len(design.names), coefficients.shape[1]))
    every[design.kept] = coefficients
    n_linear = len(design.operands) if design.linear else 0
    slopes, waves = every[1 : 1 + n_linear], every[1 + n_linear :]
    waves = waves.reshape(len(design.variables), len(design.periods), 2, -1)
    waves = np.moveaxis(waves, -1, 0)
    amplitude = np.hypot(waves[..., 0], waves[..., 1])
    dims = ("neuron", "variable", "period")
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "amplitude": (dims, amplitude),
        "phase": (dims, np.arctan2(waves[..., 1], waves[..., 0])),
        "intercept": (("neuron",), every[0]),
    }
    if design.linear:
        found["slope"] = (("neuron", "linear"), slopes.T)
    if "a+b" in design.variables:
        squares = np.sum(amplitude**2, axis=2)
        whole = squares.sum(axis=1) + np.sum(slopes**2, axis=0)
        share = squares[:, design.variables.index("a+b")]
        found["sum_share"] = (
            ("neuron",),
            np.divide(share, whole, out=np.full_like(share, np.nan), where=whole > 0),
        )
    return found
