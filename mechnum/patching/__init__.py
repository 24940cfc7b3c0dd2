"""Interventions and their effects."""

from __future__ import annotations

from mechnum.patching.circuit import Circuit
from mechnum.patching.circuit_curves import faithfulness_curve
from mechnum.patching.circuit_quality import completeness, minimality
from mechnum.patching.cumulative import cumulative
from mechnum.patching.edges import Edge
from mechnum.patching.effects import effects
from mechnum.patching.faithfulness import faithfulness
from mechnum.patching.node_names import node
from mechnum.patching.nodes import Node
from mechnum.patching.paths import path_effects
from mechnum.patching.statistics import summarise

__all__ = [
    "Circuit",
    "Edge",
    "Node",
    "completeness",
    "cumulative",
    "effects",
    "faithfulness",
    "faithfulness_curve",
    "minimality",
    "node",
    "path_effects",
    "summarise",
]
