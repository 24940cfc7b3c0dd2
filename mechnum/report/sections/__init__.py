"""The sections of a trace's page, each made from one part of the results or left out with it."""

from __future__ import annotations
