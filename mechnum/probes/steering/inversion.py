"""The state that a probe is surest of, for each number: probe inversion.

Source: Štefánik et al. 2026 (arXiv 2510.26285), steering.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy.special import log_softmax

from mechnum.errors import InvalidInput
from mechnum.inputs import as_states
from mechnum.probes.base import CodeProbe, NumberProbe
from mechnum.probes.values import whole_numbers

_TOLERANCE = 1e-3
_STEPS = 2_000
_SPAN = 100.0  # Nats.
_CHECK_EVERY = 25
_FLAT = 1e-12  # Directions with less than this part of the largest singular value are none.

# Value [target] and gradient [target, axis] at points [target, axis].
_Objective = Callable[
    [Float64[np.ndarray, "target axis"]],
    tuple[Float64[np.ndarray, " target"], Float64[np.ndarray, "target axis"]],
]


def invert_probe(
    probe: NumberProbe,
    centre: Float[np.ndarray, " d"],
    radius: float,
    numbers: Int[np.ndarray, " number"] | None = None,
    shape: Float[np.ndarray, "d axis"] | None = None,
) -> Float64[np.ndarray, "number d"]:
    """For each number the state within a ball that the probe is surest shows it.

    It minimises the cross-entropy of the probe at that number. Logits ⟨W x + b, code⟩ are linear
    in the state, so this is a convex problem. The cross-entropy is log(1 + exp g) with
    g(x) = log Σ exp(logit_u − logit_v) over the other numbers u; g has the same minimum and does
    not flatten out where the probe is sure, so that g is what is minimised: by accelerated
    projected gradients (Beck & Teboulle 2009) with restarts (O'Donoghue & Candès 2015), until the
    gap to the least value is below a thousandth, or for 2,000 steps. Logits that span more than 100
    nats in the ball are scaled down to that: a probe so sharp tells states apart by rounding.

    Without a bound there is no minimum: a probe grows surer along a ray for ever. Štefánik et
    al. 2026 start at Gaussian noise and stop after 200,000 steps of gradient descent, so that the
    length of a vector comes from the schedule, and its part that the probe does not read is the
    noise it began with. Here the ball is said, and that part is the centre's.

    Args:
        probe: fitted, of those that compare a linear reading with codes of numbers.
        centre: the mean state, say.
        radius: of the ball.
        numbers: which of the probe's `classes_`; all of them by default.
        shape: axes of an ellipsoid, as columns; the ball is centre + radius · shape · z with
            |z| ≤ 1. Without it the ball is round. With the axes of the states, each as long as
            states vary, the state that is found is as likely as states are: what a probe reads are
            also directions in which states hardly differ (Haufe et al. 2014), and a round ball
            goes along these.

    Raises:
        InvalidInput: on a probe whose logits are not linear in the state, a centre of another
            width, a radius that is not above 0, and numbers that do not compete.
    """
    probe = linear(probe)
    middle = as_states(np.asarray(centre)[None], probe.n_features_in_)[0]
    if not (np.isfinite(radius) and radius > 0):
        raise InvalidInput(f"radius is {radius}: give a length above 0")
    wanted = probe.classes_ if numbers is None else whole_numbers(numbers)
    if not (known := np.isin(wanted, probe.classes_)).all():
        raise InvalidInput(f"{wanted[~known][0]} does not compete in the probe: leave it out")
    ball = radius * (np.eye(len(middle)) if shape is None else np.asarray(shape))
    weights = probe.codes_.T @ probe.coef_ @ ball
    # A constant in all logits changes nothing; without it fewer directions are left.
    weights = weights - weights.mean(axis=0)
    _, sizes, axes = np.linalg.svd(weights, full_matrices=False)
    axes = axes[sizes > _FLAT * sizes[0]]
    slopes = weights @ axes.T
    offsets = probe.decision_function(middle[None])[0]
    softened = max(1.0, float(np.linalg.norm(slopes, axis=1).max()) / _SPAN)
    targets = np.searchsorted(probe.classes_, wanted)
    objective = _margins(slopes / softened, offsets / softened, targets)
    steepest = float((slopes**2).sum(axis=1).max() / softened**2)
    found = _least_in_unit_ball(objective, slopes[targets], steepest)
    return middle + found @ axes @ ball.T


def linear(probe: NumberProbe) -> CodeProbe:
    """The probe, whose logits are linear in the state.

    Raises:
        InvalidInput: they are not.
    """
    if not isinstance(probe, CodeProbe):
        raise InvalidInput(
            f"{type(probe).__name__} has no logits that are linear in the state: use a probe such "
            "as ParamSinProbe or FourierRegressionProbe"
        )
    return probe


def _margins(
    slopes: Float64[np.ndarray, "number axis"],
    offsets: Float64[np.ndarray, " number"],
    targets: Int[np.ndarray, " target"],
) -> _Objective:
    """g of each target: log of the odds of all other numbers, and its gradient."""
    rows = np.arange(len(targets))

    def margins(points: Float64[np.ndarray, "target axis"]):
        logits = points @ slopes.T + offsets
        own = logits[rows, targets]
        logits[rows, targets] = -np.inf
        likelihood = log_softmax(logits, axis=1)
        # log Σ exp over the others, from any of them.
        largest = logits.argmax(axis=1)
        total = logits[rows, largest] - likelihood[rows, largest]
        return total - own, np.exp(likelihood) @ slopes - slopes[targets]

    return margins


def _least_in_unit_ball(
    objective: _Objective, start: Float64[np.ndarray, "target axis"], curvature: float
) -> Float64[np.ndarray, "target axis"]:
    """The least point of a convex function of each row, in the ball of radius 1.

    Args:
        curvature: the gradient changes at most this many times as much as its point.
    """
    points = _into_ball(start / np.linalg.norm(start, axis=1, keepdims=True).clip(1e-300))
    ahead, momentum = points, np.ones(len(points))
    for step in range(_STEPS):
        if step % _CHECK_EVERY == 0:
            value, slope = objective(points)
            # How much lower a convex function can be anywhere in the ball.
            gap = (slope * points).sum(axis=1) + np.linalg.norm(slope, axis=1)
            if (gap <= _TOLERANCE * np.maximum(1, np.abs(value))).all():
                break
        moved = _into_ball(ahead - objective(ahead)[1] / curvature)
        overshot = ((ahead - moved) * (moved - points)).sum(axis=1) > 0
        momentum[overshot] = 1
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        pace = np.where(overshot, 0, (momentum - 1) / grown)[:, None]
        ahead, points, momentum = moved + pace * (moved - points), moved, grown
    return points


def _into_ball(points: Float64[np.ndarray, "target axis"]) -> Float64[np.ndarray, "target axis"]:
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
