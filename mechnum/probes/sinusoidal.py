"""Sinusoidal probes: numbers as sines of fixed frequencies, or of learnt ones."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from mechnum.errors import InvalidInput
from mechnum.inputs import positive_integer
from mechnum.probes.base import Numbers
from mechnum.probes.trained import Code, Reader, TrainedProbe, drawn


class FixedSines(Code):
    """V s(v) + c with the sines s of a transformer's positions (Vaswani et al. 2017)."""

    def __init__(self, latent: int, size: int, base: float, generator: np.random.Generator) -> None:
        super().__init__()
        self.latent = latent
        self.frequencies = base ** (-2 * np.arange((size + 1) // 2) / size)
        self.size = size
        self.projection = drawn(generator, (latent, size), 1 / np.sqrt(size))
        self.constant = drawn(generator, (latent, 1), 1 / np.sqrt(size))

    def features(self, numbers: Int[np.ndarray, " number"]) -> tuple[Tensor, ...]:
        """s_2i = sin(v·ω_i) and s_2i+1 = cos(v·ω_i)."""
        angle = self.frequencies[:, None] * numbers
        waves = np.stack([np.sin(angle), np.cos(angle)], axis=1).reshape(-1, len(numbers))
        return (torch.from_numpy(waves[: self.size]),)

    def forward(self, features: tuple[Tensor, ...]) -> Float[Tensor, "latent number"]:
        """The projected sines."""
        return self.projection @ features[0] + self.constant


class SinProbe(TrainedProbe[FixedSines]):
    """The older sinusoidal probe: logits_v = ⟨W x + b, V s(v) + c⟩.

    s(v) has sin and cos of v·e^(−2i·ln(1000)/d), so fixed frequencies, of which V picks.

    Source: Štefánik et al. 2026 (arXiv 2510.26285) and Kadlčík et al. 2025 (arXiv 2506.08966). The
    paper's are latent_size 100, l1 1e-3 or 1e-2 and, for numbers of several tokens, learning_rate
    5e-4 and 10,000 steps.

    Args:
        latent_size: width of both projections.
        code_size: d, the length of s(v); None for the width of the states.
        l1: of the penalty l1·(Σ|W| + Σ|V|).
        numbers, steps, ..., seed: see `TrainedProbe`.
    """

    def __init__(
        self,
        latent_size: int = 100,
        code_size: int | None = None,
        l1: float = 1e-3,
        numbers: Numbers = None,
        steps: int = 3000,
        batch_size: int | None = 256,
        learning_rate: float = 1e-2,
        decay: bool = True,
        patience: int | None = 500,
        validation_share: float = 0.05,
        standardise: bool = True,
        device: str | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__(
            numbers,
            steps,
            batch_size,
            learning_rate,
            decay,
            patience,
            validation_share,
            standardise,
            device,
            dtype,
            seed,
        )
        self.latent_size = latent_size
        self.code_size = code_size
        self.l1 = l1

    def _code(self, d: int, generator: np.random.Generator) -> FixedSines:
        size = d if self.code_size is None else positive_integer("code_size", self.code_size)
        latent = positive_integer("latent_size", self.latent_size)
        check_penalty("l1", self.l1)
        return FixedSines(latent, size, 1000.0, generator)

    def _penalty(self, reader: Reader[FixedSines]) -> Tensor:
        return self.l1 * (reader.weight.abs().sum() + reader.code.projection.abs().sum())


class LearntSines(Code):
    """One sine for each latent unit, whose amplitude, phase and frequency are learnt.

    A frequency is kept as its start plus a shift in turns over all the numbers: one step of Adam is
    then as careful with it as with an amplitude, however many numbers there are. The phase is that
    in their middle, where it hardly depends on the frequency.
    """

    def __init__(
        self,
        latent: int,
        numbers: Int[np.ndarray, " number"],
        amplitude: float,
        generator: np.random.Generator,
    ) -> None:
        super().__init__()
        self.latent = latent
        low, high = int(numbers[0]), int(numbers[-1])
        self.span, self.middle = high - low, (low + high) / 2
        self.start = np.linspace(1 / self.span, 0.5, latent)
        self.amplitude = nn.Parameter(torch.full((latent,), amplitude))
        self.phase = nn.Parameter(torch.from_numpy(generator.uniform(0, 2 * np.pi, latent)).float())
        self.shift = nn.Parameter(torch.zeros(latent))

    def features(self, numbers: Int[np.ndarray, " number"]) -> tuple[Tensor, ...]:
        """The angle at the starting frequencies, and what shift and phase add to it."""
        around = numbers - self.middle
        # Whole turns are taken out first: single precision has no room for them.
        turns = np.outer(self.start, around) % 1
        moved = np.stack([2 * np.pi * around / self.span, np.ones(len(numbers))])
        return torch.from_numpy(2 * np.pi * turns), torch.from_numpy(moved)

    def forward(self, features: tuple[Tensor, ...]) -> Float[Tensor, "latent number"]:
        """sin(φ + 2πf·v), without the amplitudes."""
        angle, moved = features
        return torch.addmm(angle, torch.stack([self.shift, self.phase], dim=1), moved).sin()

    def scaled(self, reading: Float[Tensor, "row latent"]) -> Float[Tensor, "row latent"]:
        """The reading times the amplitudes: a smaller product than that of all codes."""
        return reading * self.amplitude

    def waves(self) -> tuple[Float64[np.ndarray, " latent"], ...]:
        """Amplitude, frequency and phase at v = 0; on integers any other form says the same.

        Amplitudes are at least 0, frequencies in 0 … ½ and phases in 0 … 2π.
        """
        amplitude, at_middle, shift = (
            part.detach().double().cpu().numpy()
            for part in (self.amplitude, self.phase, self.shift)
        )
        frequency = self.start + shift / self.span
        phase = at_middle - 2 * np.pi * ((frequency * self.middle) % 1)
        frequency = frequency % 1
        mirrored = frequency > 0.5
        # sin(φ + 2πfv) is sin(π − φ + 2π(1 − f)v) on integers, and −sin x is sin(x + π).
        frequency = np.where(mirrored, 1 - frequency, frequency)
        phase = np.where(mirrored, np.pi - phase, phase)
        phase = np.where(amplitude < 0, phase + np.pi, phase)
        return np.abs(amplitude), frequency, phase % (2 * np.pi)


class ParamSinProbe(TrainedProbe[LearntSines]):
    """The parametric sinusoidal probe: each latent unit has one sine of the number.

    z = W x + b and logits_v = Σ_j z_j · a_j · sin(φ_j + 2π f_j v), trained by cross-entropy +
    l1·Σ|a| + l2·ΣW². Frequencies start evenly between one wave over all the numbers and ½. H should
    be the count of the numbers or more: a wave needs two units, for its cos and its sin, that start
    within one wave more or fewer over all the numbers, beyond which they do not notice it. Without
    the l1 that prunes units the probe learns the training numbers by heart; few numbers need more
    of it, some 3e-2 for a hundred.

    Source: Štefánik et al. 2026 (arXiv 2510.26285), code prompteus/sin-param. The paper's are
    H 2048, amplitude 1e-4, l1 and l2 1e-3, learning_rate 1e-4 without decay, 10,000 steps on all
    rows (batch_size None), states as they are (standardise False), and phases of 0, where the
    number 0 cannot be read since all sines are 0 there: here phases start at random. For texts the
    paper has H 500, amplitude 0.01, l1 and l2 1e-2, batch_size 64 and 20,000 steps. The defaults
    here get as far in fewer steps.

    Args:
        H: latent units, and so sines.
        amplitude: of all sines before training.
        l1: the penalty on amplitudes.
        l2: the penalty on W.
        numbers, steps, ..., seed: see `TrainedProbe`.

    Attributes:
        frequencies_: f [latent] in waves for each 1 of the number, 0 to ½.
        phases_: φ [latent] in radians, 0 to 2π.
        amplitudes_: a [latent], at least 0.
    """

    frequencies_: Float64[np.ndarray, " latent"]
    phases_: Float64[np.ndarray, " latent"]
    amplitudes_: Float64[np.ndarray, " latent"]

    def __init__(
        self,
        H: int = 1024,
        amplitude: float = 1e-4,
        l1: float = 1e-2,
        l2: float = 1e-3,
        numbers: Numbers = None,
        steps: int = 3000,
        batch_size: int | None = 256,
        learning_rate: float = 1e-2,
        decay: bool = True,
        patience: int | None = 500,
        validation_share: float = 0.05,
        standardise: bool = True,
        device: str | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__(
            numbers,
            steps,
            batch_size,
            learning_rate,
            decay,
            patience,
            validation_share,
            standardise,
            device,
            dtype,
            seed,
        )
        self.H = H
        self.amplitude = amplitude
        self.l1 = l1
        self.l2 = l2

    def frequencies(self) -> xr.Dataset:
        """The fitted sines, the largest amplitude first.

        Returns:
            Over `sine`, whose coordinate is the latent unit: `frequency` (waves for each 1 of the
            number), `period` (infinite at frequency 0), `amplitude` and `phase` (radians) of
            amplitude·sin(phase + 2π·frequency·v).
        """
        check_is_fitted(self)
        order = np.argsort(-self.amplitudes_, kind="stable")
        frequency = self.frequencies_[order]
        period = np.divide(1, frequency, out=np.full(len(order), np.inf), where=frequency > 0)
        columns = {
            "frequency": frequency,
            "period": period,
            "amplitude": self.amplitudes_[order],
            "phase": self.phases_[order],
        }
        return xr.Dataset(
            {name: ("sine", column) for name, column in columns.items()},
            coords={"sine": order},
            attrs={"probe": repr(self), "seed": self.seed},
        )

    def _code(self, d: int, generator: np.random.Generator) -> LearntSines:
        check_penalty("l1", self.l1)
        check_penalty("l2", self.l2)
        if not np.isfinite(self.amplitude) or self.amplitude == 0:
            raise InvalidInput(
                f"amplitude is {self.amplitude}: sines of 0 learn nothing, give 1e-4"
            )
        units = positive_integer("H", self.H)
        return LearntSines(units, self.classes_, self.amplitude, generator)

    def _penalty(self, reader: Reader[LearntSines]) -> Tensor:
        amplitudes = reader.code.amplitude.abs().sum()
        return self.l1 * amplitudes + self.l2 * reader.weight.square().sum()

    def _keep(self, code: LearntSines) -> None:
        self.amplitudes_, self.frequencies_, self.phases_ = code.waves()


def check_penalty(name: str, value: float) -> None:
    """Refuse a penalty that is none.

    Raises:
        InvalidInput: if it is not finite or below 0.
    """
    if not (np.isfinite(value) and value >= 0):
        raise InvalidInput(f"{name} is {value}: give a penalty of 0 or more, such as 1e-3")
