"""What the final logits over numbers are made of, prompt by prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import BasisKind, FourierBasis, fourier_basis
from mechnum.inputs import seed_sequence
from mechnum.progress import track

_RANKINGS = ("prompt", "mean", "random")


def rebuilt_answers(
    logits: Any, answers: Any, basis: BasisKind = "orthonormal", seed: int = 0
) -> xr.Dataset:
    """Is the right number still the largest logit, with only the k strongest frequencies left?

    A frequency's sine and cosine go together; the constant, which changes no answer, is always
    there. Zhou et al. 2024, section 2, show one answer that 5 components give already.

    Args:
        logits: of the number tokens 0 … N − 1, [prompt, number].
        answers: the right number of each prompt, [prompt].
        seed: of the random ranking.

    Returns:
        `correct` over (ranking, kept, prompt): whether the largest rebuilt logit is the answer's,
        where `ranking` is "prompt" (each prompt's own strongest frequencies), "mean" (the same for
        all, by mean amplitude) or "random" (the same for all, as a control), and `kept` is 1 to all
        of the frequencies; `order` over (ranking, kept), the frequency that comes in, −1 where it
        differs from prompt to prompt; `correct_unfiltered` over prompt, with the logits as given.

    Raises:
        InvalidInput: on logits that are not finite or not [prompt, number], and on answers that do
            not fit them.
    """
    logits, answers = _checked(logits, answers)
    waves = fourier_basis(logits.shape[1], basis)
    coefficients = waves.coefficients(logits.T)
    amplitude = np.sqrt(waves.power(coefficients)).T
    n_prompts, n_frequencies = amplitude.shape
    common = {
        "mean": np.argsort(-amplitude.mean(axis=0), kind="stable"),
        "random": np.random.default_rng(seed_sequence(seed)).permutation(n_frequencies),
    }
    orders = {
        "prompt": np.argsort(-amplitude, axis=1, kind="stable"),
        **{name: np.broadcast_to(order, amplitude.shape) for name, order in common.items()},
    }
    correct = np.empty((len(_RANKINGS), n_frequencies, n_prompts), dtype=bool)
    for place, ranking in enumerate(track(_RANKINGS, "rebuilding answers")):
        for kept, rebuilt in enumerate(_rebuilt(waves, coefficients, orders[ranking])):
            correct[place, kept] = rebuilt.argmax(axis=1) == answers
    order = np.full(correct.shape[:2], -1)
    for name, one in common.items():
        order[_RANKINGS.index(name)] = waves.frequencies[one]
    return xr.Dataset(
        {
            "correct": (("ranking", "kept", "prompt"), correct),
            "order": (("ranking", "kept"), order),
            "correct_unfiltered": ("prompt", logits.argmax(axis=1) == answers),
        },
        coords={"ranking": list(_RANKINGS), "kept": np.arange(1, n_frequencies + 1)},
        attrs={"basis": basis, "n_numbers": logits.shape[1], "seed": seed},
    )


def detrended_spectrum(logits: Any) -> xr.Dataset:
    """The waves of number logits without their linear trend, each prompt scaled to [−1, 1].

    Kantamneni & Tegmark 2025, section on errors: in GPT-J period 10 dominates, and the slope is
    mostly negative.

    Args:
        logits: of the number tokens 0 … N − 1, [prompt, number].

    Returns:
        `amplitude` over (prompt, frequency), of the orthonormal basis; `slope` over prompt, in
        logits per number. Coordinate `period` over frequency. NaN in `amplitude` where a prompt's
        logits are a straight line, which has no scale.

    Raises:
        InvalidInput: on logits that are not finite or not [prompt, number].
    """
    logits, _ = _checked(logits, np.zeros(len(np.asarray(logits)), dtype=np.int64))
    waves = fourier_basis(logits.shape[1])
    numbers = np.arange(logits.shape[1]) - (logits.shape[1] - 1) / 2
    slope = logits @ numbers / (numbers @ numbers)
    left = logits - logits.mean(axis=1, keepdims=True) - slope[:, None] * numbers
    low, high = left.min(axis=1, keepdims=True), left.max(axis=1, keepdims=True)
    rounding = 1e-12 * np.abs(logits).max(axis=1, keepdims=True)
    span = np.where(high - low > rounding, high - low, np.nan)
    scaled = 2 * (left - low) / span - 1
    amplitude = np.sqrt(waves.power(waves.coefficients(scaled.T))).T
    return xr.Dataset(
        {"amplitude": (("prompt", "frequency"), amplitude), "slope": ("prompt", slope)},
        coords={
            "frequency": waves.frequencies,
            "period": ("frequency", waves.periods),
        },
        attrs={"n_numbers": logits.shape[1]},
    )


def _rebuilt(
    waves: FourierBasis,
    coefficients: Float64[np.ndarray, "row prompt"],
    orders: Int[np.ndarray, "prompt frequency"],
):
    """The logits with 1, 2, … of the frequencies, in each prompt's own order."""
    prompts = np.arange(coefficients.shape[1])
    rows = [np.flatnonzero(waves.frequency == k) for k in waves.frequencies]
    # A frequency of one row has it twice, the second time with a weight of 0.
    pairs = np.array([(own[0], own[-1]) for own in rows])
    weights = np.array([(1.0, float(len(own) > 1)) for own in rows])
    rebuilt = np.outer(coefficients[0], waves.inverse[:, 0])
    for column in range(orders.shape[1]):
        chosen = orders[:, column]
        for part in range(2):
            row = pairs[chosen, part]
            size = coefficients[row, prompts] * weights[chosen, part]
            rebuilt += size[:, None] * waves.inverse.T[row]
        yield rebuilt


def _checked(
    logits: Any, answers: Any
) -> tuple[Float64[np.ndarray, "prompt number"], Int[np.ndarray, " prompt"]]:
    logits, answers = np.asarray(logits, dtype=np.float64), np.asarray(answers)
    if logits.ndim != 2 or not len(logits):
        raise InvalidInput(f"logits of shape {logits.shape}: give them as [prompt, number]")
    if not np.isfinite(logits).all():
        raise InvalidInput("some logits are not finite: look for what makes the model overflow")
    if answers.shape != logits.shape[:1] or answers.dtype.kind not in "iu":
        raise InvalidInput("answers do not fit the logits: give one whole number for each prompt")
    if answers.min() < 0 or answers.max() >= logits.shape[1]:
        raise InvalidInput(
            f"the answer {answers.max() if answers.min() >= 0 else answers.min()} is none of the "
            f"numbers 0 to {logits.shape[1] - 1} that have logits: give logits of more numbers"
        )
    return logits, answers
