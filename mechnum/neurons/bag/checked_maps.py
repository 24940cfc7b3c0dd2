"""What the analyses of operand maps take: checked values and the integers behind the prompts."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float

from mechnum.errors import InvalidInput, MechnumError
from mechnum.neurons.bag.kinds import Numbers

# With fewer prompts nothing can be told from chance.
_FEWEST = 4


def map_values(
    maps: xr.Dataset, name: Literal["activation", "pre", "logit"]
) -> Float[np.ndarray, "node prompt"]:
    """One variable of the maps.

    Raises:
        MechnumError: where it is missing, has other dimensions, too few prompts, no neurons, or
            values that are not finite.
    """
    if not isinstance(maps, xr.Dataset) or name not in maps.data_vars:
        raise MechnumError(
            f"the maps have no {name!r}: give what mechnum.neurons.operand_maps gave"
        )
    values = maps[name]
    if set(values.dims) != {"node", "prompt"}:
        raise MechnumError(
            f"{name} of the maps has dimensions {values.dims}: give one value for each node and "
            "prompt, as mechnum.neurons.operand_maps does"
        )
    array = values.transpose("node", "prompt").values
    n_nodes, n_prompts = array.shape
    if not n_nodes or n_prompts < _FEWEST:
        raise MechnumError(
            f"the maps are of {n_nodes} neurons and {n_prompts} prompts: give one neuron and "
            f"{_FEWEST} prompts at least"
        )
    if not np.isfinite(array).all():
        raise InvalidInput(
            f"{name} of {maps['node'].values[~np.isfinite(array).all(axis=1)][0]} is not finite "
            "for every prompt: check the model's weights, or load it with dtype='float32'"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def map_numbers(maps: xr.Dataset) -> Numbers:
    """The integers behind the prompts: "a", "b" where tasks have two operands, and "result".

    Raises:
        MechnumError: where "a" or "answer" is missing or not whole.
    """
    found = {}
    for name, coordinate in (("a", "a"), ("b", "b"), ("result", "answer")):
        if coordinate not in maps.coords:
            if name == "b":
                continue
            raise MechnumError(
                f"the maps do not say {coordinate!r} of their prompts: "
                "give what mechnum.neurons.operand_maps gave"
            )
        values = maps[coordinate].values
        if values.shape != (maps.sizes["prompt"],) or not np.array_equal(values, np.floor(values)):
            raise InvalidInput(
                f"{coordinate} of the maps is no whole number for each prompt: give what "
                "mechnum.neurons.operand_maps gave"
            )
        found[name] = values.astype(np.int64)
    return found
