"""Probes that are trained by cross-entropy: a linear reading, compared with a code of each number.

Source: Štefánik et al. 2026 (arXiv 2510.26285), probes section, and the code prompteus/sin-param.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mechnum.errors import InvalidInput
from mechnum.inputs import seed_sequence
from mechnum.models.devices import device_of
from mechnum.models.memory import batches
from mechnum.probes.base import CodeProbe, Numbers
from mechnum.probes.training import Check, Schedule, Score, cross_entropy, train
from mechnum.probes.values import value_split

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Code(nn.Module):
    """A code of numbers, with or without parameters; the subclasses say which."""

    latent: int

    @abstractmethod
    def features(self, numbers: Int[np.ndarray, " number"]) -> tuple[Tensor, ...]:
        """What `forward` needs to know of these numbers and training does not change."""

    @abstractmethod
    def forward(self, features: tuple[Tensor, ...]) -> Float[Tensor, "latent number"]:
        """The codes of the numbers that the features are of."""

    def scaled(self, reading: Float[Tensor, "row latent"]) -> Float[Tensor, "row latent"]:
        """The reading in the scale of the codes."""
        return reading


CodeType = TypeVar("CodeType", bound=Code)


class Reader(nn.Module, Generic[CodeType]):
    """Logits ⟨W x + b, code⟩ of a batch of states."""

    def __init__(self, d: int, code: CodeType, generator: np.random.Generator) -> None:
        super().__init__()
        self.weight = drawn(generator, (code.latent, d), 1 / np.sqrt(d))
        self.bias = drawn(generator, (code.latent,), 1 / np.sqrt(d))
        self.code = code

    def forward(
        self, states: Float[Tensor, "row d"], codes: Float[Tensor, "latent number"]
    ) -> Float[Tensor, "row number"]:
        """Logits of the numbers that the codes are of."""
        reading = nn.functional.linear(states, self.weight, self.bias)
        return self.code.scaled(reading) @ codes


def drawn(generator: np.random.Generator, shape: tuple[int, ...], bound: float) -> nn.Parameter:
    """A parameter with values uniform within ±bound, as torch's linear layers begin."""
    values = generator.uniform(-bound, bound, size=shape)
    return nn.Parameter(torch.from_numpy(values).float())


class TrainedProbe(CodeProbe, Generic[CodeType]):
    """A probe whose reading, and maybe code, minimise cross-entropy and a penalty.

    While it trains, the logits of numbers that no training row has are −∞: they are left out of the
    softmax, so that nothing is learnt against them. When it reads, all of `classes_` compete.

    Args:
        numbers: the numbers that compete; None for all between the extremes that fit sees.
        steps, batch_size, learning_rate, decay, patience: see `training.Schedule`.
        validation_share: of the distinct numbers that fit sees; their rows are not trained on, but
            decide when to stop and which state to keep. 0, or a share of less than half a number,
            keeps the last state.
        standardise: train on states of mean 0 and deviation 1 in each dimension. The scale becomes
            a part of `coef_` and `intercept_`; False is the paper's.
        device: as torch names it; the CPU by default.
        dtype: "float32" or "float64", of the training.
        seed: of held-out numbers, first state and batches.

    Attributes:
        history_: the checks on the held-out numbers.
        best_step_: steps after which the kept state was reached; `steps` without held-out numbers.
        validation_numbers_: the numbers held out.
    """

    history_: list[Check]
    best_step_: int
    validation_numbers_: Int[np.ndarray, " held"]

    def __init__(
        self,
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
        self.numbers = numbers
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.patience = patience
        self.validation_share = validation_share
        self.standardise = standardise
        self.device = device
        self.dtype = dtype
        self.seed = seed

    @abstractmethod
    def _code(self, d: int, generator: np.random.Generator) -> CodeType:
        """The code before training, for states of width d."""

    def _penalty(self, reader: Reader[CodeType]) -> Tensor | float:
        """What the loss has beside the cross-entropy."""
        return 0.0

    def _fit(self, states: Float[np.ndarray, "row d"], values: Int[np.ndarray, " row"]) -> None:
        schedule = Schedule(
            self.steps, self.batch_size, self.learning_rate, self.decay, self.patience
        )
        if self.dtype not in _DTYPES:
            raise InvalidInput(f"dtype {self.dtype!r} is not supported: use float32 or float64")
        place, dtype = device_of(self.device), _DTYPES[self.dtype]
        first, order, split = seed_sequence(self.seed).spawn(3)
        rows, held = self._held_out(values, int(split.generate_state(1)[0]))
        known, targets = np.unique(values[rows], return_inverse=True)
        mean, scale = self._scaling(states[rows])

        def tensor(some: Int[np.ndarray, " some"]) -> Tensor:
            return torch.as_tensor((states[some] - mean) / scale, dtype=dtype, device=place)

        generator = np.random.default_rng(first)
        reader = Reader(states.shape[1], self._code(states.shape[1], generator), generator)
        reader = reader.to(place, dtype)
        code = reader.code
        shown, all_numbers = (
            tuple(part.to(place, dtype) for part in code.features(numbers))
            for numbers in (known, self.classes_)
        )
        inputs = tensor(rows)
        columns = torch.as_tensor(targets.reshape(-1), device=place)

        def loss(batch: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
            batch = batch.to(place)
            logits = reader(inputs[batch], code(shown))
            return cross_entropy(logits, columns[batch]) + self._penalty(reader)

        heldout = tensor(held)
        places = torch.as_tensor(np.searchsorted(self.classes_, values[held]), device=place)

        def check() -> Score:
            return score(reader, heldout, places, code(all_numbers))

        what = f"training {type(self).__name__}"
        self.history_ = train(
            reader,
            loss,
            check if len(held) else None,
            len(rows),
            schedule,
            np.random.default_rng(order),
            what,
        )
        best = max(self.history_, key=lambda one: one.score, default=None)
        self.best_step_ = best.step if best else schedule.steps
        self.validation_numbers_ = np.unique(values[held])
        with torch.no_grad():
            unit = code.scaled(torch.ones(1, code.latent, dtype=dtype, device=place))
            weight, bias, codes = (
                part.double().cpu().numpy()
                for part in (reader.weight, reader.bias, unit.T * code(all_numbers))
            )
        self.coef_ = weight / scale
        self.intercept_ = bias - self.coef_ @ mean
        self.codes_, self.offsets_ = codes, np.zeros(len(self.classes_))
        self._keep(code.cpu())

    def _keep(self, code: CodeType) -> None:
        """Set what is readable of the trained code."""

    def _held_out(
        self, values: Int[np.ndarray, " row"], seed: int
    ) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " held"]]:
        share, distinct = self.validation_share, len(np.unique(values))
        if not 0 <= share < 1:
            raise InvalidInput(f"validation_share is {share}: give a share from 0 to below 1")
        if round(share * distinct) == 0:
            return np.arange(len(values)), np.arange(0)
        train, held = value_split(values, (1 - share, share), seed)
        return train, held

    def _scaling(
        self, states: Float[np.ndarray, "row d"]
    ) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
        """What to subtract from states and divide them by."""
        if not self.standardise:
            return np.zeros(states.shape[1]), np.ones(states.shape[1])
        deviation = states.std(axis=0, dtype=np.float64)
        return states.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0)


def score(
    reader: Reader[CodeType],
    states: Float[Tensor, "row d"],
    places: Int[Tensor, " row"],
    codes: Float[Tensor, "latent number"],
) -> Score:
    """How well states are read whose numbers are at `places` among those that compete."""
    right, likelihood = 0, 0.0
    for rows in batches(len(states), 12 * codes.shape[1]):
        logits = reader(states[rows], codes)
        right += int((logits.argmax(dim=1) == places[rows]).sum())
        likelihood -= float(cross_entropy(logits, places[rows])) * len(logits)
    return Score(right / len(states), likelihood / len(states))
