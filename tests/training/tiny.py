"""Recipes that run in a fraction of a second."""

from __future__ import annotations

from functools import partial

from mechnum.models.adders import GPTJAdder
from mechnum.models.native import NativeConfig
from mechnum.training.data import addition, modular_addition
from mechnum.training.nets import AdderNet, HelixStart, NativeNet
from mechnum.training.recipe import Recipe

_CONFIG = GPTJAdder(n_numbers=19, n_layers=1, n_heads=2, d_model=16, rotary_dim=4, n_ctx=8)

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
