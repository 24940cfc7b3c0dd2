"""The clock and the pizza: two ways of adding modulo a prime (Zhong et al. 2023)."""

from __future__ import annotations
