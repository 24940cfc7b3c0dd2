"""The instruments: each measures a model with several of the package's tools, and gives one tree of
results that `mechnum.report` draws as a page."""

from __future__ import annotations
