"""What a fitted neuron computes, in words and as values."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.fourier.least_squares import wave_angle
from mechnum.inputs import numbers_with_states
from mechnum.neurons.chosen import at_nodes
from mechnum.neurons.waves.design import values_of
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node

_LEAST_SHARE = 0.01


def predict(fitted: xr.Dataset, numbers: Float64[np.ndarray, "prompt operand"]) -> xr.DataArray:
    """The fits' values at any operands.

    Args:
        fitted: what `mechnum.neurons.fit` gave, or a part of it. Chosen neurons are cheap; all of a
            large model and many prompts fill gigabytes.
        numbers: one column for each of the fit's operands.

    Returns:
        (..., prompt), NaN where a layer has no MLP.

    Raises:
        InvalidInput: on numbers that are not finite.
        MechnumError: where there is not one column for each operand.
    """
    operands = fitted.attrs["operands"].split(", ")
    numbers, _ = numbers_with_states(numbers, np.zeros(len(numbers)))
    if numbers.shape[1] != len(operands):
        raise MechnumError(
            f"the numbers have {numbers.shape[1]} columns, but the fit is in "
            f"{', '.join(operands)}: give one for each"
        )
    values = fitted["intercept"] + xr.DataArray(np.zeros(len(numbers)), dims="prompt")
    if "slope" in fitted:
        own = xr.DataArray(numbers, dims=("prompt", "linear"), coords={"linear": operands})
        values = values + xr.dot(
            fitted["slope"], (own - fitted["centre"]) / fitted["half_range"], dim="linear"
        )
    for variable in fitted["variable"].values.tolist():
        of_variable = values_of(numbers, operands, variable)
        for period in fitted["period"].values.tolist():
            term = fitted.sel(variable=variable, period=period)
            angle = xr.DataArray(wave_angle(of_variable, period), dims="prompt")
            values = values + term["amplitude"] * np.cos(angle - term["phase"])
    return values.drop_vars(["variable", "period", "centre", "half_range"], errors="ignore").rename(
        "predicted"
    )


def formula(fitted: xr.Dataset, node: Node | str | None = None, terms: int = 3) -> str:
    """A neuron's fit in words: `5.0 cos(2π/2 (a+b)) + 1.3 cos(2π/10 (a − 3.2)) + 0.2`.

    The largest terms first, a linear term by its slope over half the operand's range, the constant
    last; `…` stands for more terms, of which those below a hundredth of the largest are no part. A
    wave's shift is in (−T/2, T/2].

    Args:
        fitted: what `mechnum.neurons.fit` gave.
        node: "neuron 3.17"; left out where `fitted` is of one neuron already.
        terms: how many terms at most, beside the constant.

    Raises:
        MechnumError: where the fits do not have this neuron, or are of several without a node.
    """
    if node is not None:
        chosen = parse_node(node) if isinstance(node, str) else node
        fitted = at_nodes(fitted, [chosen]).isel(node=0)
    if fitted["intercept"].ndim:
        raise MechnumError(
            f"the fits are of {fitted['intercept'].size} neurons: name one, such as 'neuron 3.17'"
        )
    intercept = float(fitted["intercept"])
    if not np.isfinite(intercept):
        raise MechnumError("this layer has no MLP: choose a neuron of another layer")
    sized = sorted(_linear_terms(fitted) + _waves(fitted), key=lambda one: -abs(one[0]))
    least = _LEAST_SHARE * abs(sized[0][0])
    sized = [(size, words) for size, words in sized if abs(size) > least]
    shown = [(size, f" {words}") for size, words in sized[:terms]]
    text = "".join(_signed(size, words, first=not i) for i, (size, words) in enumerate(shown))
    if len(sized) > terms:
        text += " + …" if text else "…"
    if abs(intercept) > least or not text:
        text += _signed(intercept, "", first=not text)
    return text


def _linear_terms(fitted: xr.Dataset) -> list[tuple[float, str]]:
    if "slope" not in fitted:
        return []
    found = []
    for operand in fitted["linear"].values.tolist():
        own = fitted.sel(linear=operand)
        words = f"({_shifted(operand, float(own['centre']))})/{float(own['half_range']):g}"
        found.append((float(own["slope"]), words))
    return found


def _waves(fitted: xr.Dataset) -> list[tuple[float, str]]:
    modulus = fitted.attrs.get("modulus")
    found = []
    for variable in fitted["variable"].values.tolist():
        for period in fitted["period"].values.tolist():
            own = fitted.sel(variable=variable, period=period)
            shift = float(own["phase"]) * period / (2 * np.pi)
            argument = _shifted(variable, shift)
            if any(character in argument for character in "+-− "):
                argument = f"({argument})"
            turns = f"/{period:.4g}" if modulus is None else f"·{modulus / period:.4g}/{modulus}"
            found.append((float(own["amplitude"]), f"cos(2π{turns} {argument})"))
    return found


def _shifted(name: str, shift: float) -> str:
    """`a − 3.2`."""
    rounded = f"{abs(shift):.4g}" if abs(shift) >= 100 else f"{abs(shift):.3g}"
    return name if abs(shift) < 0.005 else f"{name} {'−' if shift > 0 else '+'} {rounded}"


def _signed(size: float, words: str, first: bool) -> str:
    sign = ("−" if size < 0 else "") if first else (" − " if size < 0 else " + ")
    # Two significant digits, never as 1.2e+02.
    number = f"{float(f'{abs(size):.2g}'):g}"
    return f"{sign}{number}{words}"
