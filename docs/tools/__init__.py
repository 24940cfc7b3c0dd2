"""What the documentation is made with: the reference and the index of messages, at build time."""

from __future__ import annotations
