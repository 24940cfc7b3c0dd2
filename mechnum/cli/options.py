"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Draw no progress bars.")]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundled name, smollm2, a Hugging Face id, a folder or a GGUF file.",
    ),
]
Device = Annotated[
    str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, cuda, cuda:1, mps.")
]
Dtype = Annotated[
    str | None, typer.Option(metavar="DTYPE", help="float32, bfloat16, float16 or float64.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything drawn at random.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")]
