"""Arguments and options that several commands share.

What a choice is called here is what the library calls it; importing the library's own names would
import torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Draw no progress bars.")]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundled name, smollm2, a Hugging Face id, a folder, a GGUF or net.toml file.",
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

# The task.
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="addition, a-23, a//5, 1.5a, a_mod_2, x-a=0 or modular_addition:P; by default the "
        "model's own.",
    ),
]
ModularTaskName = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="TASK", help="modular_addition:P; by default what the model says itself."
    ),
]
Between = Annotated[str, typer.Option("--range", metavar="FIRST-LAST", help="The operands.")]
MaxSum = Annotated[int | None, typer.Option(help="Leave out larger sums.")]
Shots = Annotated[int, typer.Option(min=0, help="Solved questions before each prompt.")]
Digits = Annotated[
    Literal["single", "last"],
    typer.Option(help="single refuses numbers of several tokens; last reads their last one."),
]
TemplateText = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="TEXT",
        help="The prompt, like {a}+{b}= (tasks of one number: {a} alone); by default the model's "
        "own or its family's.",
    ),
]

# The pairs.
NPairs = Annotated[int, typer.Option(min=1, max=10_000, help="Pairs of prompts to patch, at most.")]
Vary = Annotated[Literal["a", "b", "any"], typer.Option(help="The operand that differs in a pair.")]
WrongToo = Annotated[
    bool, typer.Option("--wrong-too", help="Patch also prompts that the model answers wrongly.")
]

# The prompts.
NPrompts = Annotated[int, typer.Option(min=1, help="Prompts that are drawn, at most.")]

# The measurement.
Position = Annotated[
    str,
    typer.Option(
        metavar="POSITION",
        help="a, op, b, end, an index (negative ones from the end), all at once, or each in turn.",
    ),
]
Metric = Annotated[
    Literal["logit_diff", "logprob", "prob", "logit"],
    typer.Option(help="What is scored: y's logit minus the other answer's, or y alone."),
]
Norm = Annotated[
    Literal["exact", "frozen"],
    typer.Option(help="Recompute the norm that a difference passes, or keep its scale."),
]
Direction = Annotated[
    Literal["denoise", "noise"],
    typer.Option(help="denoise patches the corrupt run, noise the clean one."),
]
PutIn = Annotated[
    Literal["other", "zero", "mean", "resample"],
    typer.Option("--values", help="What is put in: the other prompt's values, or an ablation."),
]
MeanOver = Annotated[
    Literal["position", "token", "prompt"], typer.Option(help="What --values mean averages over.")
]
FourierKind = Annotated[
    Literal["orthonormal", "paper"],
    typer.Option("--basis", help="Waves over numbers; paper is that of Zhou et al. 2024."),
]
Top = Annotated[int, typer.Option(min=1, metavar="K", help="Rows of the table that is printed.")]
