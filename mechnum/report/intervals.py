"""What the intervals of pictures are, in words."""

from __future__ import annotations

from mechnum.intervals import mean_interval

__all__ = ["COUNTED", "INTERVAL_WORDS", "ONE_FIT", "ONE_RUN", "mean_interval"]

INTERVAL_WORDS = "95 % percentile bootstrap over pairs, for each value by itself"
COUNTED = "none: these prompts themselves, each counted once"
ONE_FIT = "none: a fit of one table of states, its R² over all pairs together"
ONE_RUN = "none: one training run, others would differ"
