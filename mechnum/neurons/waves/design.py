"""The columns that neurons are fitted with: linear terms and waves in sums of the operands.

Source: Kantamneni & Tegmark 2025, section 5.3, with each cosine as a cosine and a sine, so that the
fit is linear in its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int

from mechnum.columns import independent_columns
from mechnum.errors import InvalidInput
from mechnum.fourier.least_squares import checked_periods, wave_angle

_TERM = re.compile(r"([+-]?)([A-Za-z_]\w*)")


@dataclass(frozen=True)
class WaveDesign:
    """The columns at every prompt; made by `wave_design`.

    Attributes:
        operands: names of the numbers behind a prompt.
        numbers: their values.
        variables: sums and differences of operands that have waves.
        periods: of the waves in each variable.
        linear: whether each operand has a linear term. A sum's linear term is the sum of theirs
            and has no column of its own.
        centre, half_range: of each operand, which the linear terms are rescaled to [−1, 1] with.
        names: of all columns.
        kept: the columns that are neither zero nor spanned by those before them.
        matrix: the kept columns; the first is the constant.
    """

    operands: tuple[str, ...]
    numbers: Float64[np.ndarray, "prompt operand"]
    variables: tuple[str, ...]
    periods: tuple[float, ...]
    linear: bool
    centre: Float64[np.ndarray, " operand"]
    half_range: Float64[np.ndarray, " operand"]
    names: tuple[str, ...]
    kept: Bool[np.ndarray, " column"]
    matrix: Float64[np.ndarray, "prompt kept"]

    @property
    def dropped(self) -> list[str]:
        """Names of the columns that are left out."""
        return [name for name, kept in zip(self.names, self.kept, strict=True) if not kept]

    def folds(self, n_folds: int, seed: np.random.SeedSequence) -> Int[np.ndarray, " prompt"]:
        """Which fold holds each prompt out.

        Prompts of the same numbers are in the same fold, and folds are drawn over numbers: neither
        depends on the order of the prompts.

        Raises:
            InvalidInput: where there are more folds than distinct numbers, or a fold holds out what
                a column is about.
        """
        _, which = np.unique(self.numbers, axis=0, return_inverse=True)
        which = which.reshape(-1)  # NumPy 2.0 alone returns it as a column
        n_distinct = int(which.max()) + 1
        if not 2 <= n_folds <= n_distinct:
            raise InvalidInput(
                f"{n_distinct} different prompts do not make {n_folds} folds: give 2 to "
                f"{n_distinct}"
            )
        fold = (np.random.default_rng(seed).permutation(n_distinct) % n_folds)[which]
        for held_out in range(n_folds):
            if not independent_columns(self.matrix[fold != held_out]).all():
                raise InvalidInput(
                    f"without the prompts of one of {n_folds} folds the terms cannot be told "
                    "apart: give more prompts, fewer periods, or more folds"
                )
        return fold


def wave_design(
    numbers: Float64[np.ndarray, "prompt operand"],
    operands: Sequence[str],
    variables: Sequence[str],
    periods: Sequence[float | int],
    linear: bool,
) -> WaveDesign:
    """The columns of a fit on these prompts.

    Raises:
        InvalidInput: on variables that are no sums of operands or are there twice, on periods as
            `mechnum.fourier.amplitudes`, on waves that these prompts cannot tell from the terms
            before them, and on fewer different prompts than columns.
    """
    variables, checked = _checked_variables(variables, operands), checked_periods(periods)
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    centre, half_range = (low + high) / 2, np.maximum((high - low) / 2, 0.5)
    columns, names, owner = [np.ones(len(numbers))], ["constant"], [""]
    if linear:
        columns += list(((numbers - centre) / half_range).T)
        names += [f"linear({operand})" for operand in operands]
        owner += [""] * len(operands)
    for variable in variables:
        values = values_of(numbers, operands, variable)
        for period in checked:
            angle = wave_angle(values, period)
            columns += [np.cos(angle), np.sin(angle)]
            names += [f"{part}(T={period:g}, {variable})" for part in ("cos", "sin")]
            owner += [f"period {period:g} in {variable}"] * 2
    matrix = np.column_stack(columns)
    kept = independent_columns(matrix)
    n_distinct = len(np.unique(numbers, axis=0))
    if n_distinct <= kept.sum():
        raise InvalidInput(
            f"{n_distinct} different prompts cannot fix {kept.sum()} terms: give more prompts, or "
            "fewer periods"
        )
    told = {name for name, keep in zip(owner, kept, strict=True) if keep}
    for wave in dict.fromkeys(owner):
        if wave not in told:
            raise InvalidInput(
                f"{wave} cannot be told from the terms before it on these prompts: leave this "
                "period or this variable out, or give more prompts"
            )
    return WaveDesign(
        tuple(operands),
        numbers,
        variables,
        checked,
        linear,
        centre,
        half_range,
        tuple(names),
        kept,
        matrix[:, kept],
    )


def values_of(
    numbers: Float64[np.ndarray, "prompt operand"], operands: Sequence[str], variable: str
) -> Float64[np.ndarray, " prompt"]:
    """A sum or difference of operands at every prompt."""
    signs = _signs(variable)
    return sum(
        (sign * numbers[:, list(operands).index(name)] for name, sign in signs.items()),
        start=np.zeros(len(numbers)),
    )


def operands_in(variables: Sequence[str]) -> tuple[str, ...]:
    """The operands that the variables are sums and differences of.

    Raises:
        InvalidInput: on a variable that is no sum of names.
    """
    return tuple(dict.fromkeys(name for variable in variables for name in _signs(variable)))


def _signs(variable: str) -> dict[str, int]:
    text = variable.replace(" ", "")
    terms = _TERM.findall(text)
    whole = "".join(sign + name for sign, name in terms)
    if not terms or whole != text or len({name for _, name in terms}) < len(terms):
        raise InvalidInput(
            f"variable {variable!r} is no sum of operands: write it as 'a', 'a+b' or 'a-b'"
        )
    return {name: -1 if sign == "-" else 1 for sign, name in terms}


def _checked_variables(variables: Sequence[str], operands: Sequence[str]) -> tuple[str, ...]:
    if not variables:
        raise InvalidInput("no variables to fit: name at least one, for example ('a',)")
    for variable in variables:
        if missing := [name for name in _signs(variable) if name not in operands]:
            raise InvalidInput(
                f"the prompts have no number {missing[0]!r}: use {', '.join(operands)}"
            )
        if list(variables).count(variable) > 1:
            raise InvalidInput(f"variable {variable!r} is there twice: give each variable once")
    return tuple(variables)
