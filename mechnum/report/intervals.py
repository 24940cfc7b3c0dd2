"""What the intervals of pictures are, in words."""

from __future__ import annotations

from mechnum.intervals import mean_interval

__all__ = ["INTERVAL_WORDS", "mean_interval"]

INTERVAL_WORDS = "95 % percentile bootstrap over pairs, for each value by itself"
