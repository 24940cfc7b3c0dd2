"""Interventions and their effects."""

from __future__ import annotations

from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.circuit.circuit import Circuit
from mechnum.patching.circuit.curves import faithfulness_curve
from mechnum.patching.circuit.faithfulness import faithfulness
from mechnum.patching.circuit.quality import completeness, minimality
from mechnum.patching.cumulative import cumulative
from mechnum.patching.edges import Edge
from mechnum.patching.effects import effects
from mechnum.patching.given import Given, given_effects, joint_given_effects
from mechnum.patching.node_names import node
from mechnum.patching.nodes import Node
from mechnum.patching.path.paths import path_effects
from mechnum.patching.statistics import summarise
from mechnum.patching.tree import results

__all__ = [
    "Circuit",
    "Edge",
    "Given",
    "Node",
    "attribute",
    "completeness",
    "cumulative",
    "effects",
    "faithfulness",
    "faithfulness_curve",
    "given_effects",
    "joint_given_effects",
    "minimality",
    "node",
    "path_effects",
    "results",
    "summarise",
]
