"""What kinds of errors a model makes: the signature that its way to compute leaves.

Sources: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section on errors: ±10, and no link to
carries. Zhou et al. 2024 (arXiv 2406.03445), section 3: multiples of 10, errors below 6, parity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float64
from scipy.stats import chi2_contingency

from mechnum.errors import MechnumError
from mechnum.intervals import mean_interval
from mechnum.tasks.accuracy import Accuracy

Errors = Float64[np.ndarray, " prompt"]
_Test = Callable[[np.ndarray], np.ndarray]

# Of wrong answers that are numbers; an error is predicted − right.
_NUMERIC: Mapping[str, _Test] = MappingProxyType(
    {
        "−10": lambda error: error == -10,
        "+10": lambda error: error == 10,
        "multiple of 10": lambda error: error % 10 == 0,
        "multiple of 50": lambda error: error % 50 == 0,
        "even": lambda error: error % 2 == 0,
        "below 6": lambda error: np.abs(error) < 6,
    }
)
NO_NUMBER = "no number"
PARITY_RIGHT, UNITS_RIGHT = "parity right, all answers", "units digit right, all answers"
KINDS = (*_NUMERIC, NO_NUMBER, PARITY_RIGHT, UNITS_RIGHT)
# Sums of the units digits from which the tens are carried, and with the paper's own threshold.
_CARRIES = (9, 10)


def error_kinds(accuracy: Accuracy) -> xr.DataArray:
    """Which kinds each answer is of.

    Returns:
        Over (kind, prompt): 1 or 0, NaN where the kind does not apply. "−10" to "below 6" apply
        to wrong answers that are numbers ("multiple of 10": the units digit is right; "multiple of
        50": errors of 50 and 100 are; "even": the parity is right; "below 6": at most 5 away), "no
        number" to all wrong answers, "parity right, all answers" and "units digit right, all
        answers" to all that are numbers, right ones too.

    Raises:
        MechnumError: where answers are read by their first pieces, which are no numbers.
    """
    errors, wrong = _read(accuracy)
    is_number = np.isfinite(errors)
    filled = np.where(is_number, errors, 0.0)
    rows = [np.where(wrong & is_number, test(filled), np.nan) for test in _NUMERIC.values()]
    rows.append(np.where(wrong, ~is_number, np.nan))
    rows += [np.where(is_number, filled % base == 0, np.nan) for base in (2, 10)]
    return xr.DataArray(
        np.stack(rows).astype(np.float64), dims=("kind", "prompt"), coords={"kind": list(KINDS)}
    )


def error_signature(accuracy: Accuracy, seed: int = 0) -> xr.Dataset:
    """The errors of a model, counted.

    Args:
        seed: of the bootstrap over prompts.

    Returns:
        Over kind (see `error_kinds`): `share` with the 95 % interval `low` to `high`, of the `n`
        answers that the kind applies to. `count` over error: how many wrong answers are off by
        that much. For plain addition, over `carry` (the units digits add up to more than this, 9
        or 10): `carry_wrong` and `carry_all`, the share of such prompts among the wrong and among
        all; `chi2` and `chi2_p`, of Pearson's test that wrong and right prompts have the same share
        (NaN where a row or column of the table is empty). Attributes: n_prompts, n_wrong,
        n_no_number.

    Raises:
        MechnumError: as `error_kinds`, and on no prompts.
    """
    kinds = error_kinds(accuracy)
    found = mean_interval(kinds, dim="prompt", seed=seed).rename({"mean": "share"})
    wrong = ~accuracy.correct.numpy()
    counts = accuracy.error_counts()
    found = found.assign(
        xr.Dataset(
            {"count": ("error", np.array(list(counts.values()), dtype=np.int64))},
            coords={"error": np.array(list(counts), dtype=np.int64)},
        )
    ).assign_attrs(
        n_prompts=len(accuracy),
        n_wrong=int(wrong.sum()),
        n_no_number=int(np.nansum(kinds.sel(kind=NO_NUMBER).values)),
    )
    carries = _carries(accuracy, wrong)
    return found if carries is None else found.assign(carries)


def _carries(accuracy: Accuracy, wrong: Bool[np.ndarray, " prompt"]) -> xr.Dataset | None:
    """None for tasks that carry no tens."""
    if not {"a", "b"} <= set(accuracy.variables):
        return None
    a, b, right = (accuracy.variables[name].numpy() for name in ("a", "b", "answer"))
    if not np.array_equal(a + b, right) or min(a.min(), b.min()) < 0:
        return None
    columns: dict[str, list[float]] = {
        name: [] for name in ("carry_wrong", "carry_all", "chi2", "chi2_p")
    }
    for threshold in _CARRIES:
        carried = a % 10 + b % 10 > threshold
        table = np.array(
            [[np.sum(carried & of), np.sum(~carried & of)] for of in (wrong, ~wrong)], dtype=int
        )
        tested = (table.sum(axis=0) > 0).all() and (table.sum(axis=1) > 0).all()
        chi2, p = chi2_contingency(table, correction=False)[:2] if tested else (np.nan, np.nan)
        share = carried[wrong].mean() if wrong.any() else np.nan
        for name, value in zip(columns, (share, carried.mean(), chi2, p), strict=True):
            columns[name].append(float(value))
    return xr.Dataset(
        {name: ("carry", values) for name, values in columns.items()},
        coords={"carry": list(_CARRIES)},
    )


def _read(accuracy: Accuracy) -> tuple[Errors, Bool[np.ndarray, " prompt"]]:
    if len(accuracy) == 0:
        raise MechnumError("there are no answers: run at least one prompt")
    errors = accuracy.errors.numpy()
    if bool((accuracy.correct & accuracy.errors.isnan()).any()):
        raise MechnumError(
            "answers are read by their first pieces, which say no numbers: "
            "choose numbers of one token, with digits='single'"
        )
    return errors, ~accuracy.correct.numpy()
