"""TransformerLens is asked for when it is needed, and not before."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mechnum.errors import MechnumError

_SUPPORTED = "3.9 to 4"


def require_transformer_lens() -> None:
    """Refuse a missing or unsupported TransformerLens in one line.

    Raises:
        MechnumError: with the supported range.
    """
    try:
        installed = version("transformer-lens")
    except PackageNotFoundError:
        raise MechnumError(
            f"TransformerLens is not installed: install transformer-lens {_SUPPORTED}"
        ) from None
    major, minor = (int(part) for part in installed.split(".")[:2])
    if not (3, 9) <= (major, minor) < (5, 0):
        raise MechnumError(
            f"TransformerLens {installed} is not supported: install transformer-lens {_SUPPORTED}"
        )
