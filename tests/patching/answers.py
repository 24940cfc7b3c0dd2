"""Effects that were worked out by hand, as tables that tests loop over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

Effect = float | Fraction
# Effect of patching position −2, position −1, and both together.
ByPosition = tuple[Effect, Effect, Effect]
POSITIONS = (-2, -1, None)


@dataclass(frozen=True)
class Answers:
    """Effects on one pair of clean values in the corrupt run, in units of the logit difference.

    Attributes:
        clean_metric, corrupt_metric: of the two plain runs.
        totals: node → total effects.
        directs: sender → direct effects with the norm recomputed.
        frozen_directs: the same with the scale of the corrupt run.
        edges: edge → path effects of the variant `edge`, of every edge that is possible.
    """

    clean_metric: Effect
    corrupt_metric: Effect
    totals: Mapping[str, ByPosition]
    directs: Mapping[str, ByPosition]
    frozen_directs: Mapping[str, ByPosition]
    edges: Mapping[str, ByPosition]


def cases(table: Mapping[str, ByPosition]) -> Iterator[tuple[str, int | None, float]]:
    """(name, position, effect) for each position and for both (None)."""
    for name, effects in table.items():
        for position, effect in zip(POSITIONS, effects):
            yield name, position, float(effect)


def with_neurons(table: Mapping[str, ByPosition]) -> dict[str, ByPosition]:
    """The same for `neuron l.0` and `neuron_in l.0` too, where every MLP is one neuron."""
    named = dict(table)
    for name, effects in table.items():
        for sender in (name, _neuron(name, "mlp ", "neuron ")):
            for receiver in (sender, _neuron(sender, "mlp_in ", "neuron_in ")):
                named[receiver] = effects
    return named


def _neuron(name: str, whole: str, part: str) -> str:
    before, found, layer = name.partition(whole)
    return f"{before}{part}{layer[0]}.0{layer[1:]}" if found else name
