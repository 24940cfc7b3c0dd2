"""Keeps other libraries from talking, and from changing how the caller's process talks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No bars and no advice from transformers; its settings and the filters come back."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
