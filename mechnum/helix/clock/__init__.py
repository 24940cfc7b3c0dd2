"""Clock tracing: which heads move helix(a, b), which parts build helix(a+b) and write it out.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5.
"""

from __future__ import annotations

from mechnum.helix.clock.classes import CLASSES, check_n_mixed, head_classes
from mechnum.helix.clock.contents import CONTENTS, Fits
from mechnum.helix.clock.heads import fitted_effects, head_effects
from mechnum.helix.clock.mlps import mlp_stages
from mechnum.helix.clock.validation import joint_validation

__all__ = [
    "CLASSES",
    "CONTENTS",
    "Fits",
    "check_n_mixed",
    "fitted_effects",
    "head_classes",
    "head_effects",
    "joint_validation",
    "mlp_stages",
]
