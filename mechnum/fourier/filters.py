"""Filters: vectors of the model's width without the waves that the unembedding sees in them.

Source: Zhou et al. 2024 (arXiv 2406.03445), section 3 and appendix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import FourierBasis
from mechnum.fourier.readings import check_numbers_of
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.model import Model

TauUnit = Literal["row", "frequency"]
# Singular values below this share of the largest are taken for 0.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Band:
    """Which rows of a Fourier basis a filter removes; the constant is never among them.

    Made by `low_pass`, `high_pass`, `single_pass` and `without`.

    Attributes:
        name: what is removed, in words.
        first: the first row that is removed, 1 or more.
        end: one past the last one; None for all.
        frequencies: the frequencies whose rows are removed, in place of `first` and `end`.
        keep: the frequencies are those that stay instead.
    """

    name: str
    first: int = 1
    end: int | None = None
    frequencies: tuple[int, ...] | None = None
    keep: bool = False

    def removed(self, basis: FourierBasis) -> Bool[np.ndarray, " row"]:
        """The rows of this basis that go.

        Raises:
            InvalidInput: on frequencies that the basis does not have, and where no row goes.
        """
        rows = np.arange(len(basis.frequency))
        if self.frequencies is None:
            gone = (rows >= self.first) & (rows < (len(rows) if self.end is None else self.end))
        else:
            if unknown := [k for k in self.frequencies if k not in basis.frequencies]:
                raise InvalidInput(
                    f"frequency {unknown[0]} is none of the waves over {basis.n_numbers} numbers: "
                    f"choose from 1 to {basis.frequencies[-1]}"
                )
            gone = (np.isin(basis.frequency, self.frequencies) != self.keep) & (rows > 0)
        if not gone.any():
            raise InvalidInput(
                f"'{self.name}' names none of the {len(rows)} rows over {basis.n_numbers} numbers: "
                "choose another tau or frequency"
            )
        return gone


def low_pass(tau: int = 50, tau_unit: TauUnit = "row") -> Band:
    """Removes the high components.

    Args:
        tau: where low ends. Zhou et al. 2024 say 50 twice, and mean two things:
        tau_unit: "row" as in their filters: rows below `tau` are low, so that frequencies up to
            about `tau`/2 are. "frequency" as in their spectra: rows below 2·`tau` are low, so that
            the sine of the frequency `tau` is low and its cosine is high.
    """
    return Band(f"high removed, from {tau_unit} {tau}", first=_first_high_row(tau, tau_unit))


def high_pass(tau: int = 50, tau_unit: TauUnit = "row") -> Band:
    """Removes the low components, but the constant; `tau` as in `low_pass`."""
    return Band(f"low removed, below {tau_unit} {tau}", end=_first_high_row(tau, tau_unit))


def single_pass(frequency: int) -> Band:
    """Removes all but one frequency and the constant."""
    k = positive_integer("the frequency", frequency)
    return Band(f"all but frequency {k} removed", frequencies=(k,), keep=True)


def without(frequencies: Iterable[int]) -> Band:
    """Removes these frequencies, sine and cosine."""
    chosen = tuple(sorted({positive_integer("a frequency", k) for k in frequencies}))
    if not chosen:
        raise InvalidInput("no frequency is removed: name at least one")
    return Band(f"frequency {', '.join(map(str, chosen))} removed", frequencies=chosen)


@dataclass(frozen=True, eq=False)
class Removal:
    """A subspace of the residual stream that is taken out of vectors.

    Attributes:
        directions: orthonormal, one a column.
    """

    directions: Float64[np.ndarray, "d_model rank"]

    @property
    def rank(self) -> int:
        """How many directions go."""
        return self.directions.shape[1]

    def __call__(self, x: Float64[np.ndarray, "*row d_model"]) -> Float64[np.ndarray, "*row d"]:
        """The vectors without what lies in the subspace: the nearest that have nothing there."""
        return x - (x @ self.directions) @ self.directions.T

    def tensor(self, like: Tensor) -> Float[Tensor, "d_model rank"]:
        """The directions on a tensor's device, in float32 at least."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        return torch.from_numpy(self.directions).to(like.device, dtype)


def wave_matrix(
    model: Model, numbers: Int[Tensor, " number"], basis: FourierBasis
) -> Float64[np.ndarray, "row d_model"]:
    """F·W_U: each row gives one Fourier coefficient of the number logits of a vector.

    The lens here is the unembedding alone: no norm and no bias (Zhou et al. 2024). Where the final
    norm has a scale that was not folded into the unembedding, it is not in it.

    Raises:
        MechnumError: on token ids that the model has no logits for, and numbers that are not those
            of the basis.
    """
    check_numbers_of(model, numbers)
    W_U = model.decoder.weights.W_U
    columns = W_U[:, numbers.to(W_U.device)].detach().double().cpu().numpy()
    return basis.coefficients(columns.T)


def removal(waves: Float64[np.ndarray, "row d_model"]) -> Removal:
    """Takes out of a vector what these rows see, and changes it as little as possible.

    With M the rows, y = x − M⁺M x is the vector nearest to x for which M y = 0: M⁺M projects on the
    span of the rows, here by a thin singular value decomposition (relative tolerance 1e-6).
    Other waves change too, as far as their rows are not orthogonal to these.

    Raises:
        InvalidInput: on rows that are not finite.
    """
    if not np.isfinite(waves).all():
        raise InvalidInput("the unembedding has values that are not finite: check the weights")
    _, singular, rows = np.linalg.svd(waves, full_matrices=False)
    return Removal(rows[singular > _TOLERANCE * np.max(singular, initial=0.0)].T.copy())


def band_removal(
    model: Model, numbers: Int[Tensor, " number"], band: Band, basis: FourierBasis
) -> Removal:
    """The removal of a band's waves from what the unembedding sees of the number tokens.

    Low, high and constant parts of x need not add up to x: only where the rows of F·W_U are
    orthogonal do the part that a high-pass removes, the part that a low-pass removes, the part
    along the constant's row, and the part that no row sees.
    """
    return removal(wave_matrix(model, numbers, basis)[band.removed(basis)])


def random_removal(d_model: int, rank: int, seed: int = 0) -> Removal:
    """Takes out as many directions drawn at random: a control for `removal`."""
    generator = np.random.default_rng(seed_sequence(seed))
    return Removal(np.linalg.qr(generator.normal(size=(d_model, rank)))[0])


def _first_high_row(tau: int, unit: TauUnit) -> int:
    if unit not in get_args(TauUnit):
        raise InvalidInput(f"unknown tau_unit {unit!r}: use 'row' or 'frequency'")
    return positive_integer("tau", tau) * (2 if unit == "frequency" else 1)
