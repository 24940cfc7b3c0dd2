"""Residue probes: is n mod T linearly readable? A peak in a spectrum alone does not say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int
from sklearn.decomposition import PCA
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mechnum.errors import InvalidInput
from mechnum.fourier.discriminant import ShrunkDiscriminant
from mechnum.fourier.tables import NUMBER, as_rows, centred
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.progress import track

FEWEST = 4
"""Numbers of each residue that a probe must be trained on, at least."""
MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 25, 50, 100)
_TIE = 1e-12
_SCORES = 4_000_000  # Class scores of permuted labels that are held at a time.
READ, TOO_FEW, CONSTANT = "read", "too few numbers of some residues", "all rows are the same"


def residue_probe(
    rows: Any,
    moduli: Sequence[int] = MODULI,
    numbers: Any = None,
    folds: int = 5,
    permutations: int = 200,
    components: int = 100,
    seed: int = 0,
) -> xr.Dataset:
    """How well n mod T is read by a linear probe on numbers that it was not trained on.

    Cohen's κ = (p_o − p_e) / (1 − p_e), observed and chance agreement of predicted and true residue
    over all numbers (Fu et al. 2026; Cohen 1960): 1 for a code with a circle of period T, near 0
    for one that does not know the residue, whatever T, a linear code among them. The numbers are
    split into folds by value; scaling, PCA and the probe, a shrunk linear discriminant, see the
    training folds alone. κ is below 0 where the code groups numbers evenly over the residues, as
    last digits do for T = 3: a held-out number is then the one that its group has not shown.

    Args:
        rows, numbers: as `mechnum.fourier.as_rows` reads them; holes and repeated numbers are fine.
        moduli: the T, whole numbers of 2 or more.
        folds: parts that are held out in turn.
        permutations: of the residues among the numbers, for the null; the same ones for all rows.
        components: principal components of the scaled training rows that the probe sees, at most.
        seed: of folds and permutations.

    Returns:
        Over (..., modulus): `kappa`, `accuracy`, `p` (how often permuted residues reach this κ),
        `p_family` (how often they come as far above their mean, in standard deviations, for any
        modulus in any of the tables, such as layers), `null_mean`, their mean κ, and `null_high`,
        the κ that 5 % of them exceed. Over (...,
        modulus, number): `predicted`, the residue read from each row while its number was held
        out, −1 where none was. Coordinate `status` says "read", or why there is NaN: fewer than 4
        numbers of some residue to train on (so T ≤ 10 for 100 numbers), or rows all the same.

    Raises:
        InvalidInput: on moduli below 2 or twice, on fewer distinct numbers than folds, on fewer
            than 2 folds or 1 permutation, and on a negative seed.
    """
    rows = as_rows(rows, numbers)
    values = rows[NUMBER].values
    moduli = _moduli(moduli)
    positive_integer("components", components)
    sequence = seed_sequence(seed)
    of_folds, of_pca = map(int, sequence.generate_state(2))
    splits = _splits(values, positive_integer("folds", folds), of_folds)
    generator = np.random.default_rng(sequence.spawn(1)[0])
    permuted = _permuted(values, positive_integer("permutations", permutations), generator)
    lead = rows.dims[:-2]
    shape = tuple(rows.sizes[dim] for dim in lead)
    tables = rows.values.reshape(-1, *rows.shape[-2:])
    status = np.full((len(tables), len(moduli)), READ, dtype=object)
    status[:, [not _enough(values, splits, modulus) for modulus in moduli]] = TOO_FEW
    predicted = np.full((len(tables), len(moduli), len(values)), -1)
    found = {"accuracy": np.full(status.shape, np.nan)}
    # Of every labelling, the true one first, which counts as one of its permutations.
    kappas = np.full((*status.shape, len(permuted)), np.nan)
    for index, table in enumerate(track(tables, "residue probes")):
        if not centred(table).any():
            status[index, status[index] == READ] = CONSTANT
            continue
        own = np.asarray(table, dtype=np.float64)
        features = [_features(own, train, components, of_pca) for train, _ in splits]
        for column in np.flatnonzero(status[index] == READ):
            modulus = moduli[column]
            read = _read(features, splits, permuted, modulus)
            truth = permuted % modulus
            kappas[index, column] = [kappa(t, r, modulus) for t, r in zip(truth, read, strict=True)]
            predicted[index, column] = read[0]
            found["accuracy"][index, column] = np.mean(read[0] == truth[0])
    found |= _scored(kappas)
    dims = (*lead, "modulus")
    return xr.Dataset(
        {name: (dims, cells.reshape(*shape, -1)) for name, cells in found.items()}
        | {"predicted": ((*dims, NUMBER), predicted.reshape(*shape, len(moduli), -1))},
        coords={
            **{name: coord for name, coord in rows.coords.items() if name in (*lead, NUMBER)},
            "modulus": list(moduli),
            "status": (dims, status.astype(str).reshape(*shape, -1)),
        },
        attrs={
            **rows.attrs,
            "folds": folds,
            "permutations": permutations,
            "components": components,
            "probe_seed": seed,
            "n_numbers": len(np.unique(values)),
        },
    )


def _scored(
    kappas: Float64[np.ndarray, "table modulus labelling"],
) -> dict[str, Float64[np.ndarray, "table modulus"]]:
    """κ of the true labels, the first ones, beside that of the permuted ones."""
    unread = np.isnan(kappas[:, :, 0])
    # κ of few classes scatters more: each modulus is brought to one scale before the largest of all
    # is taken.
    spread = kappas.std(axis=-1, keepdims=True)
    scaled = (kappas - kappas.mean(axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1)
    largest = np.where(np.isnan(scaled), -np.inf, scaled).max(axis=(0, 1))
    found = {
        "kappa": kappas[:, :, 0],
        "p": (kappas >= kappas[:, :, :1] - _TIE).mean(axis=-1),
        "p_family": (largest >= scaled[:, :, :1] - _TIE).mean(axis=-1),
        "null_mean": kappas[:, :, 1:].mean(axis=-1),
        "null_high": np.quantile(kappas[:, :, 1:], 0.95, axis=-1),
    }
    return {name: np.where(unread, np.nan, cells) for name, cells in found.items()}


def kappa(
    truth: Int[np.ndarray, " row"], predicted: Int[np.ndarray, " row"], n_classes: int
) -> float:
    """Cohen's κ of two labellings with 0 … n_classes − 1; 0 where chance alone agrees fully."""
    shares = [
        np.bincount(labels, minlength=n_classes) / len(labels) for labels in (truth, predicted)
    ]
    expected = float(shares[0] @ shares[1])
    observed = float(np.mean(truth == predicted))
    return (observed - expected) / (1 - expected) if expected < 1 else 0.0


def residue_reader(components: int = 100, random_state: int = 0) -> Pipeline:
    """The probe as an estimator: `residue_reader().fit(states, numbers % T).predict(others)`."""
    return make_pipeline(*_scaling(components, random_state), ShrunkDiscriminant())


# Folds differ in length, so that the lengths have no names.
Split = tuple[Int[np.ndarray, " _"], Int[np.ndarray, " _"]]


class LeadingComponents(PCA):
    """Principal components, fewer than asked for where the rows or dimensions allow no more."""

    def fit(self, X: Any, y: Any = None) -> LeadingComponents:
        """Fit to rows [row, d]; y is not used."""
        asked = self.n_components
        self.n_components = min(asked, len(X) - 1, np.shape(X)[1])
        try:
            return super().fit(X)
        finally:
            self.n_components = asked

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to rows, and their scores."""
        return self.fit(X).transform(X)


def _scaling(components: int, random_state: int) -> tuple[StandardScaler, LeadingComponents]:
    return StandardScaler(), LeadingComponents(components, random_state=random_state)


def _features(
    table: Float64[np.ndarray, "row d"],
    train: Int[np.ndarray, " train"],
    components: int,
    random_state: int,
) -> Float64[np.ndarray, "row component"]:
    """Scores of all rows, scaled and rotated as the training rows want it."""
    scaling = make_pipeline(*_scaling(components, random_state))
    return np.asarray(scaling.fit(table[train]).transform(table))


def _read(
    features: Sequence[Float64[np.ndarray, "row _"]],
    splits: Sequence[Split],
    labels: Int[np.ndarray, "labelling row"],
    modulus: int,
) -> Int[np.ndarray, "labelling row"]:
    """The residue that is read from each row while its number is held out, for each labelling."""
    read = np.empty_like(labels)
    size = max(1, _SCORES // (labels.shape[1] * modulus))
    for start in range(0, len(labels), size):
        residues = labels[start : start + size].T % modulus
        for (train, test), scores in zip(splits, features, strict=True):
            fitted = ShrunkDiscriminant().fit(scores[train], residues[train])
            read[start : start + size, test] = fitted.predict(scores[test]).T
    return read


def _splits(numbers: Int[np.ndarray, " row"], folds: int, random_state: int) -> list[Split]:
    distinct = len(np.unique(numbers))
    if not 2 <= folds <= distinct:
        raise InvalidInput(
            f"{distinct} distinct numbers cannot be held out in {folds} folds: give 2 folds or "
            "more, and a number for each at least"
        )
    splitter = GroupKFold(folds, shuffle=True, random_state=random_state)
    return list(splitter.split(numbers[:, None], groups=numbers))


def _permuted(
    numbers: Int[np.ndarray, " row"], permutations: int, generator: np.random.Generator
) -> Int[np.ndarray, "labelling row"]:
    """The numbers themselves, and then dealt anew to the rows, all rows of one alike."""
    values, which = np.unique(numbers, return_inverse=True)
    dealt = generator.permuted(np.tile(values, (permutations, 1)), axis=1)
    return np.concatenate([values[None], dealt])[:, which.reshape(-1)]


def _enough(numbers: np.ndarray, splits: Sequence[Split], modulus: int) -> bool:
    counts = [
        np.bincount(np.unique(numbers[train]) % modulus, minlength=modulus) for train, _ in splits
    ]
    return bool(np.min(counts) >= FEWEST)


def _moduli(moduli: Sequence[int]) -> tuple[int, ...]:
    checked = tuple(positive_integer("a modulus", modulus) for modulus in moduli)
    if not checked or min(checked) < 2:
        raise InvalidInput(f"moduli {checked}: give whole numbers of 2 or more, such as 10")
    if len(set(checked)) < len(checked):
        raise InvalidInput(f"moduli {checked} name one twice: give each once")
    return checked
