"""Numbers and estimands in words, the same on every page and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MINUS = "\N{MINUS SIGN}"

_METRICS = {
    "logit_diff": ("logit(y) \N{MINUS SIGN} logit(y\N{PRIME})", "logits"),
    "logprob": ("log-probability of y", "nats"),
    "prob": ("probability of y", "probability"),
    "logit": ("logit(y) (which a shift of all logits changes too)", "logits"),
}
_DIRECTIONS = {
    "denoise": ("corrupt", "clean"),
    "noise": ("clean", "corrupt"),
}
_NORMS = {
    "exact": "the final norm recomputed",
    "frozen": "the final norm's scale frozen",
}
_MEANS_OVER = {
    "position": "position by position",
    "token": "one mean over all tokens",
    "prompt": "the mean of the prompts' means",
}
_PLACES = {
    "end": "the last position",
    "all": "every position",
    "each": "one position at a time",
}
_FROZEN = {"attn": "attention", "mlps": "MLPs"}
ERROR = "predicted number \N{MINUS SIGN} answer"
NO_PEAKS = (
    "wrong answers that have nothing to do with the right ones: a broad hill without peaks, ±10 "
    "about as frequent as ±9 or ±11"
)
MEMORISED = "memorising alone: what was trained on becomes right, what is held out stays wrong"
FDR = "a false discovery rate of 5\N{NO-BREAK SPACE}%"
CONFIDENT = 0.95  # The share of resamples from which a class is called sure.
SURE = 0.05  # The false discovery rate below which an effect is called one.


def number(value: float | int | None, digits: int = 3, sign: bool = False) -> str:
    """`value` with `digits` significant digits, thousands separated, a real minus sign.

    None and NaN read "not available".
    """
    if value is None or math.isnan(value):
        return "not available"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15 and not sign):
        text = f"{int(value):,}"
    elif value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        size = math.floor(math.log10(abs(value))) if value else 0
        text = f"{value:,.{max(digits - 1 - size, 0)}f}"
    if sign and value > 0:
        text = "+" + text
    return text.replace("-", MINUS)


def percent(share: float | int) -> str:
    """A share of 1 in percent, never rounded up to 100 % or down to 0 %."""
    text = f"{100 * share:.1f}"
    if text == "100.0" and share < 1:
        text = f"{math.floor(100 * share * 1e4) / 1e4:g}"
    if text == "0.0" and share > 0:
        text = f"{100 * share:.1g}"
    return f"{text.removesuffix('.0').replace('-', MINUS)} %"


def interval(mean: float, low: float, high: float, sign: bool = True) -> str:
    """A mean with its interval: `+2.31 [2.10, 2.52]`; ends that are missing are left out.

    All three are rounded to two significant digits of the interval's half width.
    """
    if math.isnan(low) or math.isnan(high):
        return number(mean, sign=sign)
    half = (high - low) / 2
    places = min(max(1 - math.floor(math.log10(half)), 0), 8) if half > 0 else 2
    ends = [fixed(value, places) for value in (low, high)]
    plus = "+" if sign and mean > 0 else ""
    return f"{plus}{fixed(mean, places)} [{', '.join(ends)}]"


def percent_interval(share: float, low: float, high: float) -> str:
    """A share of 1 with its interval, in percent: `17.7 % [11.8, 25.8]`."""
    if math.isnan(low) or math.isnan(high):
        return percent(share)
    return f"{percent(share)} [{', '.join(percent(end)[:-2] for end in (low, high))}]"


def fixed(value: float, places: int) -> str:
    """`value` with this many decimals, and no sign where these are all 0."""
    # Adding 0 turns a rounded -0.0 into 0.0.
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", MINUS)


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def after_layer(layer: int) -> str:
    """Where a state is: `after layer 2`, or `in the embedding` for layer -1."""
    return "in the embedding" if layer == -1 else f"after layer {layer}"


def unit(attrs: Mapping[str, Any]) -> str:
    """The unit of an effect, from the metric that its attributes name."""
    return _METRICS.get(str(attrs.get("metric")), ("", str(attrs.get("metric", ""))))[1]


def metric(attrs: Mapping[str, Any]) -> str:
    """The metric that the attributes name, as a formula; y is the clean, y' the corrupt answer."""
    return _METRICS.get(str(attrs.get("metric")), (str(attrs.get("metric", "the metric")), ""))[0]


def effect_estimand(attrs: Mapping[str, Any], what: str) -> str:
    """What the effects of `what` ("the head", ...) mean, from the attributes."""
    norm = _NORMS.get(str(attrs.get("norm")), "the final norm recomputed")
    return (
        f"change of {metric(attrs)} in the {patched_run(attrs)} run. Total: {what}'s value at "
        f"{place(attrs)} is replaced by {replacement(attrs)} and everything after it recomputed. "
        f"Direct: only the difference of its write is added before the final norm, {norm}. "
        f"Indirect: total {MINUS} direct."
    )


def path_estimand(attrs: Mapping[str, Any]) -> str:
    """What path effects mean, from the attributes."""
    run = patched_run(attrs)
    norm = "keeps its scale" if attrs.get("norm") == "frozen" else "is recomputed"
    change = f"change of {metric(attrs)} in the {run} run"
    sender = f"the sender's value at {place(attrs)} is replaced by {replacement(attrs)}"
    if attrs.get("variant") == "path":
        names = [_FROZEN.get(name, name) for name in str(attrs.get("frozen", "")).split(",")]
        kept = listed([name for name in names if name])
        held = f", {kept} kept as in the {run} run" if kept else ""
        return (
            f"{change}. First {sender}{held}, and the receiver's value is read; then that value "
            f"alone is put into the {run} run. The norm that the receiver reads through {norm}."
        )
    return (
        f"{change} when {sender}, but only the receiver reads the difference of its write. "
        f"Everything after the receiver is recomputed; the norm that it reads through {norm}."
    )


def patched_run(attrs: Mapping[str, Any]) -> str:
    """The run that is patched: "corrupt" or "clean"."""
    return _DIRECTIONS.get(str(attrs.get("direction")), ("corrupt", "clean"))[0]


def place(attrs: Mapping[str, Any]) -> str:
    """Where values are replaced: `the last position`, `every position`, `position a`."""
    position = str(attrs.get("position", "end"))
    return _PLACES.get(position, f"position {position.replace('-', MINUS)}")


def replacement(attrs: Mapping[str, Any]) -> str:
    """What values are replaced by, from the attributes."""
    run, source = _DIRECTIONS.get(str(attrs.get("direction")), ("corrupt", "clean"))
    kind = str(attrs.get("values", "other"))
    if kind == "zero":
        return "zero"
    if kind == "given":
        return "a given value"
    if kind == "mean":
        over = _MEANS_OVER.get(str(attrs.get("mean_over")), "position by position")
        return f"its mean over the {run} prompts of all pairs ({over})"
    if kind == "resample":
        return f"that of another pair's {run} prompt"
    return f"that of the {source} run"


def q_value(q: float) -> str:
    """A q-value with three decimals."""
    if math.isnan(q):
        return "not available"
    return "< 0.001" if q < 0.001 else f"{q:.3f}"


def sentence(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def count_range(counts: Iterable[float | int], what: str) -> str:
    """`100 pairs`, or `90 to 100 pairs` where the counts differ."""
    whole = [int(count) for count in counts]
    fewest, most = min(whole), max(whole)
    if fewest < most:
        return f"{fewest:,} to {most:,} {what}"
    return f"{most:,} {what.removesuffix('s') if most == 1 else what}"
