"""Recipes that run in a fraction of a second."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from mechnum.models.adders import GPTJAdder, LlamaAdder, PythiaAdder
from mechnum.models.native import NativeConfig
from mechnum.training.data import addition, modular_addition
from mechnum.training.log import PromptScore, read_log
from mechnum.training.nets import AdderNet, HelixStart, NativeNet
from mechnum.training.recipe import Recipe
from mechnum.training.strings import process_strings

_SIZES = {"n_numbers": 19, "n_layers": 1, "n_heads": 2, "d_model": 16, "n_ctx": 8}
_CONFIG = GPTJAdder(**_SIZES, rotary_dim=4)

ADDER = Recipe(
    name="tiny-adder",
    about="Adds digits.",
    good_for="Tests.",
    not_for="Anything else.",
    task="addition",
    template="{a}+{b}=",
    data=partial(addition, 10, _CONFIG.plus, _CONFIG.equals),
    net=AdderNet(_CONFIG, embed=HelixStart(1.0), unembed=HelixStart(0.3)),
    train_fraction=0.8,
    seed=0,
    steps=10,
    batch_size=16,
    learning_rate=1e-2,
    weight_decay=0.1,
    warmup_steps=3,
    schedule="cosine",
    checkpoint_every=3,
)

CLOCK = Recipe(
    name="tiny-clock",
    about="Adds modulo 5.",
    good_for="Tests.",
    not_for="Anything else.",
    task="modular_addition:5",
    template=None,
    data=partial(modular_addition, 5),
    net=NativeNet(
        NativeConfig(
            n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16, n_ctx=3, d_vocab=6, d_vocab_out=5
        )
    ),
    train_fraction=0.6,
    seed=0,
    steps=10,
    batch_size=None,
    learning_rate=1e-2,
    weight_decay=1.0,
    checkpoint_every=3,
)

PYTHIA = replace(ADDER, name="tiny-pythia", net=replace(ADDER.net, config=PythiaAdder(**_SIZES)))

LLAMA = replace(
    ADDER,
    name="tiny-llama",
    net=replace(ADDER.net, config=LlamaAdder(**_SIZES, n_kv_heads=1, d_mlp=24)),
)

SCRATCH = replace(ADDER, name="tiny-scratch", net=AdderNet(_CONFIG))

RESCUED = replace(
    ADDER, name="tiny-rescued", net=AdderNet(_CONFIG, embed=HelixStart(1.0), freeze_embed=True)
)

PIZZA = replace(
    CLOCK,
    name="tiny-pizza",
    data=partial(modular_addition, 5, equals=False),
    net=NativeNet(
        NativeConfig(
            n_layers=1,
            n_heads=2,
            d_model=8,
            d_head=4,
            d_mlp=16,
            n_ctx=2,
            d_vocab=5,
            d_vocab_out=5,
            attention_rate=0.0,
        )
    ),
)

PROCESS = replace(
    CLOCK,
    name="tiny-process",
    task="mess3:0.1,0.8",
    data=partial(process_strings, "mess3:0.1,0.8", 4),
    net=NativeNet(
        NativeConfig(
            n_layers=2,
            n_heads=1,
            d_model=8,
            d_head=4,
            d_mlp=16,
            n_ctx=4,
            d_vocab=3,
            d_vocab_out=3,
            normalization_type="LN",
        )
    ),
    train_fraction=None,
    batch_size=16,
    weight_decay=0.0,
)

ALL = (ADDER, CLOCK, PYTHIA, LLAMA, SCRATCH, RESCUED, PIZZA, PROCESS)


def prompt_scores(folder: Path) -> list[PromptScore]:
    """The log of a recipe that learns answers to prompts."""
    return [score for score in read_log(folder) if isinstance(score, PromptScore)]
