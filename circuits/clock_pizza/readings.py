"""The figures of Zhong et al. 2023, read from what `measure_clock_pizza` gives."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def symmetricity(results: xr.DataTree) -> float:
    """Mean cosine of the gradients at the embeddings of a and b."""
    return float(values(results, "verdict", "symmetricity"))


def irrelevance(results: xr.DataTree, form: int) -> float:
    """Distance irrelevance: of the right logit (0), or of the largest wrong one (1)."""
    return float(values(results, "verdict", "irrelevance").values[form])


def explained(results: xr.DataTree, circle: int, formula: str) -> float:
    """What a formula explains of the logits from one pair of principal components, from 1 on."""
    table = values(results, "components", "explained")
    if circle - 1 not in table["circle"]:
        return np.nan
    return float(table.sel(circle=circle - 1, formula=formula))
