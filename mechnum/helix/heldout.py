"""R² on numbers that the fit has not seen: splits by value, never by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit

from mechnum.errors import InvalidInput
from mechnum.helix.basis import NumberBasis
from mechnum.helix.controls import PermutedLabels
from mechnum.helix.estimators import BasisRegressor, PCAReconstruction, explained_variance
from mechnum.inputs import numbers_with_states, positive_integer, value_means

Estimator = BasisRegressor | PCAReconstruction | PermutedLabels


def splits_by_value(
    numbers: Float64[np.ndarray, "row variable"], test_size: float, splits: int, seed: int
) -> Iterator[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
    """Rows to train and to test on, `splits` times.

    For each variable a share `test_size` of its values is held out. Rows to test have held-out
    values only, rows to train have none; with several variables the other rows are left out, since
    they would show the fit one of the values that it is tested on.

    Raises:
        InvalidInput: if a part is empty.
    """
    children = np.random.SeedSequence(seed).spawn(splits)
    for child in children:
        train = np.arange(len(numbers))
        test = train
        for column, state in zip(numbers.T, child.generate_state(numbers.shape[1]), strict=True):
            splitter = GroupShuffleSplit(1, test_size=test_size, random_state=int(state))
            try:
                kept, held = next(splitter.split(column, groups=column))
            except ValueError as error:
                reason = " ".join(str(error).split()).rstrip(".")
                raise InvalidInput(
                    f"the numbers cannot be split by value ({reason}): "
                    "give more distinct numbers or a test_size between 0 and 1"
                ) from error
            train, test = np.intersect1d(train, kept), np.intersect1d(test, held)
        if len(train) == 0 or len(test) == 0:
            raise InvalidInput(
                "no row has only seen or only held-out values in every variable: "
                "give more rows or a test_size nearer to one half"
            )
        yield train, test


def heldout_r2(
    estimator: Estimator,
    numbers: Any,
    states: Any,
    *,
    test_size: float = 0.25,
    splits: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """R² of clones of `estimator` on held-out numbers; all fitting, PCA included, is inside.

    Args:
        numbers: [row] or [row, variable].
        states: [row, d].
        test_size: share of the values held out, see `splits_by_value`.
        splits: number of random splits.
        seed: of the splits; the same seed gives the same numbers.

    Returns:
        Over dimension `split`: `r2`, 1 - Σ|y - ŷ|² / Σ|y - ȳ|² over test rows and dimensions, and
        `r2_adjusted`, free of the errors of the fit's own coefficients. A fit of p columns to N
        numbers without meaning has r2 near -p/N and r2_adjusted 0 on average, so the second is the
        one to compare with 0 or between sizes. It is NaN for `PCAReconstruction`, which sees the
        state it rebuilds. Also `train_rows` and `test_rows`.

    Raises:
        InvalidInput: on unusable numbers, states or split sizes.
    """
    numbers, states = numbers_with_states(numbers, states)
    inputs = states if isinstance(estimator, PCAReconstruction) else numbers
    names = ("r2", "r2_adjusted", "train_rows", "test_rows")
    values: dict[str, list[float]] = {name: [] for name in names}
    positive_integer("splits", splits)
    for train, test in splits_by_value(numbers, test_size, splits, seed):
        fitted = cast(Estimator, clone(estimator)).fit(inputs[train], states[train])
        predicted = fitted.predict(inputs[test])
        adjusted = np.nan
        if not isinstance(fitted, PCAReconstruction):
            adjusted = _adjusted_r2(
                fitted.basis_,
                fitted.components_,
                (numbers[train], states[train]),
                (numbers[test], states[test]),
                predicted,
            )
        row = (explained_variance(states[test], predicted), adjusted, len(train), len(test))
        for name, value in zip(names, row, strict=True):
            values[name].append(value)
    return xr.Dataset(
        {name: ("split", value) for name, value in values.items()},
        attrs={"estimator": repr(estimator), "test_size": test_size, "seed": seed},
    )


def _adjusted_r2(
    basis: NumberBasis,
    components: np.ndarray,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    predicted: np.ndarray,
) -> float:
    """Held-out R² with each squared error divided by its own inflation.

    A prediction is a weighted sum w of the training numbers' mean states with Σw = 1, so if the
    numbers' deviations from the truth are exchangeable with variance σ², its squared error has
    expectation σ²(1 + |w|²), and that of the training mean likewise. States vary around the mean
    state of their number as well; no function of the number explains that part, nor inflates it.
    """
    seen, seen_means, counts, _ = value_means(*train)
    values, means, test_counts, which = value_means(*test)
    root = np.sqrt(counts)
    weights = basis.transform(values) @ np.linalg.pinv(basis.transform(seen) * root[:, None]) * root
    mean_inflation = np.sum((counts / counts.sum()) ** 2)
    # Only what the components keep is fitted; along the rest the prediction is the mean.
    centre = train[1].mean(axis=0)
    spread = (seen_means - centre) * root[:, None]
    kept = np.sum((spread @ components.T) ** 2) / max(np.sum(spread**2), np.finfo(float).tiny)
    inflation = mean_inflation + kept * (np.sum(weights**2, axis=1) - mean_inflation)

    within = np.sum((test[1] - means[which]) ** 2)
    guesses = predicted[np.unique(which, return_index=True)[1]]
    error = np.sum(test_counts * np.sum((means - guesses) ** 2, axis=1) / (1 + inflation))
    total = np.sum(test_counts * np.sum((means - centre) ** 2, axis=1) / (1 + mean_inflation))
    # States that are all the same have nothing to explain.
    return float(1 - (within + error) / (within + total)) if within + total > 0 else float("nan")
