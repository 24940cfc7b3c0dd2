"""The exceptions of this package."""

from __future__ import annotations


class MechnumError(Exception):
    """A request that is refused, in one line of the form `what is wrong: what to do`.

    The command line prints the line and exits with code 2.
    """


class InvalidInput(MechnumError, ValueError):
    """A value that an estimator refuses; scikit-learn expects a `ValueError` there."""
