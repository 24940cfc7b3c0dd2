"""Loading, wrapping and running models; the only room that knows TransformerLens."""

from __future__ import annotations

from mechnum.models.fresh import untrained
from mechnum.models.hook_writes import HookWrite, try_hooks
from mechnum.models.load import bundled, load, load_tokenizer
from mechnum.models.model import Model
from mechnum.models.run import Run, run
from mechnum.models.token_table import TokenTable, load_model_or_table, load_table
from mechnum.models.verify import Verification
from mechnum.models.wrap import wrap

__all__ = [
    "HookWrite",
    "Model",
    "Run",
    "TokenTable",
    "Verification",
    "bundled",
    "load",
    "load_model_or_table",
    "load_table",
    "load_tokenizer",
    "run",
    "try_hooks",
    "untrained",
    "wrap",
]
