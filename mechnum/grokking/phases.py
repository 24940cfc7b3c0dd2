"""When a net memorises, forms its circuit, and cleans up, from its curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from mechnum.errors import InvalidInput
from mechnum.inputs import to_numpy

MARGIN = 0.1
"""Share of the fall of log test loss that has to be behind, or ahead, for clean-up to be on."""
FACTOR = 2.0
"""How much a loss has to change to count as rising or falling."""


@dataclass(frozen=True)
class Phases:
    """The steps at which one phase gives way to the next; None where that did not happen.

    Attributes:
        memorised: the excluded loss is lowest; from here on it rises, as the circuit takes over.
        formed: the test loss begins its fall: clean-up starts.
        cleaned: the test loss has made its fall.
    """

    memorised: int | None
    formed: int | None
    cleaned: int | None

    def __str__(self) -> str:
        if self.memorised is None:
            return "no circuit formed"
        words = [f"memorisation until step {self.memorised}"]
        if self.formed is None:
            words.append("circuit formation without an end")
        else:
            words.append(f"circuit formation until step {self.formed}")
            words.append(
                "clean-up without an end"
                if self.cleaned is None
                else f"clean-up until step {self.cleaned}"
            )
        return ", ".join(words)


def find_phases(
    steps: Any,
    restricted: Any,
    excluded: Any,
    test: Any,
    margin: float = MARGIN,
    factor: float = FACTOR,
) -> Phases:
    """The phases of Nanda et al. 2023, section 5.2, who find them by eye, by a rule.

    All on log losses, along the steps:

    - *Clean-up* starts at the last step at which less than `margin` of the test loss's fall is
      behind, counted from its highest value to the lowest after that, and ends at the first
      step from which on at most `margin` of it is left. There is none where the test loss does not
      fall by `factor`.
    - *Memorisation* ends where the excluded loss is lowest before clean-up starts (at all steps
      without one).
    - *Circuit formation* lies between. It needs an excluded loss that rises by `factor` after its
      lowest value and a restricted loss that falls by `factor` from there on; else there are no
      phases, whatever the test loss does.

    Args:
        steps: rising [step].
        restricted, excluded, test: losses above 0, one for each step.

    Raises:
        InvalidInput: on fewer than 3 steps, steps that do not rise, curves of other lengths, and
            losses that are not finite and above 0.
    """
    if not 0 < margin < 0.5 or factor <= 1:
        raise InvalidInput("give a margin between 0 and 0.5 and a factor above 1")
    steps = np.asarray(to_numpy(steps))
    if steps.ndim != 1 or len(steps) < 3 or (np.diff(steps) <= 0).any():
        raise InvalidInput("the steps are not 3 or more that rise: give each checkpoint once")
    kept, without, heldout = (
        _log(curve, name, len(steps))
        for curve, name in ((restricted, "restricted"), (excluded, "excluded"), (test, "test"))
    )
    formed, cleaned = _fall(heldout, margin, np.log(factor))
    end = len(steps) if formed is None else formed + 1
    low = int(np.argmin(without[:end]))
    rises = without[low:].max() - without[low] >= np.log(factor)
    falls = kept[low] - kept[low:].min() >= np.log(factor)
    if not (rises and falls):
        return Phases(None, None, None)
    return Phases(*(None if i is None else int(steps[i]) for i in (low, formed, cleaned)))


def _fall(
    curve: Float64[np.ndarray, " step"], margin: float, least: float
) -> tuple[int | None, int | None]:
    """Where the curve starts to fall from its highest value, and where it is down for good."""
    top = int(np.argmax(curve))
    bottom = curve[top:].min()
    height = curve[top] - bottom
    if height < least:
        return None, None
    start = np.flatnonzero(curve > curve[top] - margin * height)[-1]
    above = np.flatnonzero(curve > bottom + margin * height)[-1] + 1
    return int(start), int(above) if above < len(curve) else None


def _log(curve: Any, name: str, n: int) -> Float64[np.ndarray, " step"]:
    values = np.asarray(to_numpy(curve), dtype=np.float64)
    if values.shape != (n,):
        raise InvalidInput(
            f"the {name} loss has shape {values.shape} for {n} steps: give one for each"
        )
    if not (np.isfinite(values) & (values > 0)).all():
        raise InvalidInput(f"the {name} loss is not finite and above 0: leave such steps out")
    return np.log(values)
