"""Which description of a neuron predicts what was held out: waves or heuristics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Float32, Float64, Int
from sklearn.model_selection import KFold

from mechnum.errors import InvalidInput
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.intervals import RESAMPLES, mean_interval
from mechnum.models.memory import batches
from mechnum.neurons.bag.checked_maps import map_numbers, map_values
from mechnum.neurons.bag.kinds import LENGTHS, MODULI, Numbers, parse_heuristic
from mechnum.neurons.bag.matching import THRESHOLD, heuristics
from mechnum.neurons.waves.design import wave_design
from mechnum.progress import track

_DESCRIPTIONS = ("waves", "heuristics")


def adjudicate(
    maps: xr.Dataset,
    periods: Sequence[float | int] = (2, 5, 10, 100),
    variables: Sequence[str] | None = None,
    linear: bool = True,
    of: Sequence[Literal["activation", "pre"]] = ("activation",),
    threshold: float = THRESHOLD,
    alpha: float = 0.05,
    negative: bool = False,
    lengths: Sequence[int] = LENGTHS,
    moduli: Sequence[int] = MODULI,
    folds: int = 5,
    margin: float = 0.01,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> xr.Dataset:
    """Does a neuron follow waves, or the heuristics that it matches?

    Both descriptions are fitted by least squares to the prompts of all folds but one, and predict
    the prompts of that fold. Waves: the terms of `mechnum.neurons.fit`, a constant, linear terms,
    and a cosine of any phase for each period and variable (Kantamneni & Tegmark 2025, section 5.3).
    Heuristics: a constant, and one indicator for each heuristic that `heuristics` matches on the
    training prompts alone (Nikankin et al. 2025); a neuron without a match is described by its
    mean. R² compares both with the mean of the training prompts.

    Args:
        maps: as in `heuristics`.
        periods, variables, linear: of the waves, as in `fit`; by default those in a, b and a+b. For
            nets that add modulo p give the periods of their key frequencies, p / k, "a-b" as well,
            and no linear terms.
        of: which variables of the maps are predicted, always with the heuristics that the
            activation matches. Waves are made for pre-activations ("pre"), indicators for
            activations.
        threshold, alpha, negative, lengths, moduli: as in `heuristics`.
        folds: in how many parts the prompts are split at random; each is held out once.
        margin: differences of R² no larger than this are none: a cosine of period 2 and a
            heuristic of parity say the same, with other numbers of parameters.
        resamples: of held-out prompts, for the intervals.
        seed: of the split and of the resamples.

    Returns:
        Over (of, node, description), "waves" and "heuristics": `r2` on held-out prompts, with its
        95 % bootstrap interval over prompts `r2_low`, `r2_high`, and `n_parameters`, the rank of
        the fit, mean of the folds. Over (of, node): `difference`, R² of waves minus R² of
        heuristics, with `difference_low` and `difference_high`; and `verdict`: "waves" or
        "heuristics" where the interval of the difference lies beyond `margin` on its side,
        "undecided" where it does not, "neither" where the better one's own interval is not above 0,
        and "constant" where the state is the same for all prompts, with NaN for the numbers.
        Intervals are of each neuron alone, and of prompts: they take the variance as known.

    Raises:
        MechnumError: as `heuristics` and `fit`, on a negative margin, and on more folds
            than there are pairs of prompts.
    """
    if not margin >= 0:
        raise InvalidInput(f"margin is {margin}: give a difference of R² of 0 or more")
    if not of:
        raise InvalidInput("no state is described: name 'activation', 'pre', or both")
    numbers, n_nodes = map_numbers(maps), maps.sizes["node"]
    # The states stand below each other; a neuron's heuristics are the same for all of them.
    values = np.concatenate([map_values(maps, name) for name in of])
    waves = wave_columns(numbers, periods, variables, linear)
    splits = _splits(values.shape[1], folds, seed)
    tried = _Tried.of(values, len(splits))
    for fold, (training, held_out) in enumerate(splits):
        tried.base[:, held_out] = values[:, training].mean(1, dtype=np.float64, keepdims=True)
        fitted, tried.rank[0, :, fold] = _predicted(waves, values, training, held_out)
        tried.predicted[0][:, held_out] = fitted
        found = heuristics(maps.isel(prompt=training), threshold, alpha, negative, lengths, moduli)
        columns = track(_indicators(found, numbers), "fitting heuristics", n_nodes)
        for node, matched in enumerate(columns):
            rows = slice(node, None, n_nodes)
            fitted, rank = _predicted(matched, values[rows], training, held_out)
            tried.rank[1, rows, fold] = rank
            tried.predicted[1, rows][:, held_out] = fitted
    compared = _compared(values, tried, margin, resamples, seed)
    states = [compared.isel(node=slice(at, at + n_nodes)) for at in range(0, len(values), n_nodes)]
    return (
        xr.concat(states, dim="of")
        .assign_coords(
            {
                **{name: c for name, c in maps.coords.items() if c.dims == ("node",)},
                "of": list(of),
            }
        )
        .assign_attrs(
            {
                **maps.attrs,
                "periods": list(map(float, periods)),
                "variables": "" if variables is None else ", ".join(variables),
                "threshold": threshold,
                "alpha": alpha,
                "negative": str(negative),
                "folds": folds,
                "margin": margin,
                "resamples": resamples,
                "seed": seed,
            }
        )
    )


def wave_columns(
    numbers: Numbers,
    periods: Sequence[float | int],
    variables: Sequence[str] | None = None,
    linear: bool = True,
) -> Float64[np.ndarray, "prompt column"]:
    """The columns of `mechnum.neurons.fit`, by default in the operands and their sum.

    Raises:
        InvalidInput: as there.
    """
    operands = [name for name in ("a", "b") if name in numbers]
    if variables is None:
        variables = [*operands, "a+b"] if len(operands) == 2 else operands
    table = np.column_stack([numbers[name] for name in operands]).astype(np.float64)
    return wave_design(table, operands, variables, periods, linear).matrix


class _Tried(NamedTuple):
    """What was predicted of each prompt when it was held out.

    Attributes:
        base: the mean activation of the training prompts.
        predicted: by waves and by heuristics.
        rank: of their columns on the training prompts.
    """

    base: Float32[np.ndarray, "node prompt"]
    predicted: Float32[np.ndarray, "2 node prompt"]
    rank: Float64[np.ndarray, "2 node fold"]

    @classmethod
    def of(cls, activation: Float[np.ndarray, "node prompt"], n_folds: int) -> _Tried:
        """Nothing yet."""
        return cls(
            np.zeros(activation.shape, dtype=np.float32),
            np.zeros((2, *activation.shape), dtype=np.float32),
            np.zeros((2, len(activation), n_folds)),
        )


def _splits(
    n_prompts: int, folds: int, seed: int
) -> list[tuple[Int[np.ndarray, " training"], Int[np.ndarray, " held_out"]]]:
    if not 2 <= positive_integer("folds", folds) <= n_prompts // 2:
        raise InvalidInput(
            f"{n_prompts} prompts are not split in {folds} folds: give 2 folds or more, of two "
            "prompts each at least"
        )
    state = int(seed_sequence(seed).generate_state(1)[0])
    split = KFold(folds, shuffle=True, random_state=state)
    return list(split.split(np.arange(n_prompts)))


def _indicators(
    found: xr.Dataset, numbers: Numbers
) -> Iterator[Float64[np.ndarray, "prompt column"]]:
    """For each neuron a constant and where the heuristics hold that it matches."""
    every = [parse_heuristic(str(words)) for words in found["heuristic"].values]
    held = np.column_stack([one.holds(numbers) for one in every])
    matched = found["matched"].any("sign").values
    own = found[["match", "best"]].sel(kind="multi-result")
    constant = np.ones((len(held), 1))
    for node, columns in enumerate(matched):
        sets = [str(own["best"].values[node])] if own["match"].values[node] else []
        indicators = [parse_heuristic(words).holds(numbers)[:, None] for words in sets]
        yield np.hstack([constant, held[:, columns], *indicators])


def _predicted(
    columns: Float64[np.ndarray, "prompt column"],
    values: Float[np.ndarray, "node prompt"],
    training: Int[np.ndarray, " training"],
    held_out: Int[np.ndarray, " held_out"],
) -> tuple[Float64[np.ndarray, "node held_out"], int]:
    """Held-out predictions of the least-squares fit, and the rank of its columns."""
    wanted = values[:, training].T.astype(np.float64)
    fitted, _, rank, _ = np.linalg.lstsq(columns[training], wanted, rcond=None)
    return (columns[held_out] @ fitted).T, int(rank)


def _compared(
    activation: Float[np.ndarray, "node prompt"],
    tried: _Tried,
    margin: float,
    resamples: int,
    seed: int,
) -> xr.Dataset:
    """R² of both, their difference, and the verdict.

    R² is a mean over prompts of how much less a description errs than the mean does, in units of
    the latter's mean square; so that intervals are those of a mean.
    """
    n_nodes, n_prompts = activation.shape
    tables = []
    for part in batches(n_nodes, 8 * 6 * n_prompts):
        truth = activation[part].astype(np.float64)
        base = (truth - tried.base[part]) ** 2
        gain = base - (truth - tried.predicted[:, part]) ** 2
        constant = np.ptp(activation[part], axis=1) == 0
        scale = np.where(constant, np.nan, base.mean(axis=1))
        values = np.stack([*gain, gain[0] - gain[1]]) / scale[:, None]
        skill = xr.DataArray(values, dims=("quantity", "node", "prompt"))
        tables.append(mean_interval(skill, "prompt", seed, resamples=resamples))
    table = xr.concat(tables, dim="node")
    r2 = table.isel(quantity=slice(2)).rename(quantity="description")
    difference = table.isel(quantity=2)
    names = {"mean": "{}", "low": "{}_low", "high": "{}_high"}
    return xr.Dataset(
        {
            **{form.format("r2"): r2[name] for name, form in names.items()},
            **{form.format("difference"): difference[name] for name, form in names.items()},
            "n_parameters": (("description", "node"), tried.rank.mean(axis=2)),
            "verdict": ("node", _verdicts(r2["low"], difference, margin)),
        },
        coords={"description": list(_DESCRIPTIONS)},
    ).transpose("node", "description")


def _verdicts(r2_low: xr.DataArray, difference: xr.Dataset, margin: float) -> np.ndarray:
    waves, indicators = r2_low.transpose("description", "node").values
    low, high = difference["low"].values, difference["high"].values
    cases = [
        ("constant", np.isnan(difference["mean"].values)),
        ("neither", ~((waves > 0) | (indicators > 0))),
        ("waves", (low > margin) & (waves > 0)),
        ("heuristics", (high < -margin) & (indicators > 0)),
    ]
    return np.select([case for _, case in cases], [name for name, _ in cases], "undecided")
