"""The instruments of this package as recipes use them: settings, and a measurement of a context."""

from __future__ import annotations
