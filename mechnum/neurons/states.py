"""Which state of a neuron a measurement is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from mechnum.errors import MechnumError
from mechnum.models.decoder import StateName

Of = Literal["pre", "hidden"]
"""What the activation function reads (in gated MLPs the gate), or the activation after any gate."""

STATE_OF: Mapping[Of, StateName] = {"pre": "mlp_pre", "hidden": "mlp_hidden"}
"""Its name in `mechnum.models.run.Run`."""


def check_of(of: str) -> None:
    """Refuses other states.

    Raises:
        MechnumError: on one that is not known.
    """
    if of not in get_args(Of):
        raise MechnumError(f"of={of!r} is not known: use 'pre' or 'hidden'")
