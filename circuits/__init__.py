"""Published circuits, one folder each: the recipe, the published figures, what was measured.

Installed as `mechnum.circuits`.
"""

from __future__ import annotations
