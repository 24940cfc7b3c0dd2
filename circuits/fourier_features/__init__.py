"""Addition by Fourier features of numbers (Zhou et al. 2024)."""

from __future__ import annotations
