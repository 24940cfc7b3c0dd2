"""How transformers represent numbers and compute with them.

Names are imported when they are first used, so that `import mechnum` loads neither torch nor
TransformerLens.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mechnum import (
        beliefs,
        fourier,
        grokking,
        helix,
        models,
        neurons,
        patching,
        probes,
        report,
        tasks,
        training,
    )
    from mechnum.circuits.instruments.clock import trace_clock
    from mechnum.circuits.instruments.trace import trace
    from mechnum.circuits.running.run import CircuitRun, run_circuit
    from mechnum.helix import Helix
    from mechnum.models import Model, load, wrap
    from mechnum.patching import (
        Circuit,
        attribute,
        completeness,
        cumulative,
        effects,
        faithfulness,
        faithfulness_curve,
        minimality,
        path_effects,
        summarise,
    )

from mechnum.errors import MechnumError

__version__ = "0.1.0"

_SUBPACKAGES = frozenset(
    {
        "beliefs",
        "fourier",
        "grokking",
        "helix",
        "models",
        "neurons",
        "patching",
        "probes",
        "report",
        "tasks",
        "training",
    }
)
_MODULE_OF = {
    "Circuit": "mechnum.patching",
    "CircuitRun": "mechnum.circuits.running.run",
    "attribute": "mechnum.patching",
    "completeness": "mechnum.patching",
    "cumulative": "mechnum.patching",
    "effects": "mechnum.patching",
    "faithfulness": "mechnum.patching",
    "faithfulness_curve": "mechnum.patching",
    "Helix": "mechnum.helix",
    "load": "mechnum.models",
    "minimality": "mechnum.patching",
    "Model": "mechnum.models",
    "path_effects": "mechnum.patching",
    "run_circuit": "mechnum.circuits.running.run",
    "summarise": "mechnum.patching",
    "trace": "mechnum.circuits.instruments.trace",
    "trace_clock": "mechnum.circuits.instruments.clock",
    "wrap": "mechnum.models",
}

__all__ = [
    "Circuit",
    "CircuitRun",
    "Helix",
    "MechnumError",
    "Model",
    "__version__",
    "attribute",
    "beliefs",
    "completeness",
    "cumulative",
    "effects",
    "faithfulness",
    "faithfulness_curve",
    "fourier",
    "grokking",
    "helix",
    "load",
    "minimality",
    "models",
    "neurons",
    "patching",
    "path_effects",
    "probes",
    "report",
    "run_circuit",
    "summarise",
    "tasks",
    "trace",
    "trace_clock",
    "training",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"mechnum.{name}")
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'mechnum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
