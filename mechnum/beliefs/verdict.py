"""When a readout of beliefs says something about a net."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TOKEN, NEXT_TOKEN, UNTRAINED = "current token", "next-token distribution", "untrained net"
BOTH = "token and next-token distribution"
INFORMATIVE, NOT_INFORMATIVE, UNDEFINED = "informative", "not informative", "undefined"
LEAST = 1e-4
"""Share of the beliefs' variance that a control has to be beaten by; less is rounding."""


class Verdict(NamedTuple):
    """One of "informative", "not informative" and "undefined", and why."""

    verdict: str
    reason: str


def verdict(mse: Mapping[str, float], gain_low: Mapping[str, float], variance: float) -> Verdict:
    """Is the readout of the states better than those of all controls?

    A control is beaten where the whole interval of its gain is above 0. One exception: where
    beliefs are an affine function of the next-token distribution, as those of Mess3 are, no readout
    of them can beat one from that distribution, so that the controls which know it have no say, as
    the reason says.

    Args:
        mse: of each control.
        gain_low: lower end of the interval of what the states' MSE is less than the control's.
        variance: of the beliefs, mean over coordinates.
    """
    if variance <= LEAST**3:
        return Verdict(UNDEFINED, "beliefs never change, so that there is nothing to read")
    determined = NEXT_TOKEN in mse and mse[NEXT_TOKEN] <= LEAST * variance
    rivals = [name for name in gain_low if not (determined and name in (NEXT_TOKEN, BOTH))]
    unbeaten = [name for name in rivals if not gain_low[name] > LEAST * variance]
    note = "; the next-token distribution determines these beliefs" if determined else ""
    if unbeaten:
        return Verdict(NOT_INFORMATIVE, f"no better than: {', '.join(unbeaten)}{note}")
    return Verdict(INFORMATIVE, f"better than: {', '.join(rivals)}{note}")
