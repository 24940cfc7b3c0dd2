"""The recipes that made the bundled models."""

from __future__ import annotations

from functools import partial

from mechnum.errors import MechnumError
from mechnum.models.adders import AdderConfig
from mechnum.models.native import NativeConfig
from mechnum.training.data import addition, modular_addition
from mechnum.training.nets import AdderNet, HelixStart, NativeNet
from mechnum.training.recipe import Recipe

CLOCK_113 = Recipe(
    name="clock-113",
    about="One layer without norms that adds modulo 113, grokked (Nanda et al. 2023, section 3).",
    good_for="Grokking measures, Fourier spectra of weights and neurons, and the published "
    "analysis of modular addition, within seconds.",
    not_for="Claims about language models: it has one layer, no norms, and one task.",
    task="modular_addition:113",
    template=None,
    data=partial(modular_addition, 113),
    net=NativeNet(
        NativeConfig(
            n_layers=1,
            n_heads=4,
            d_model=128,
            d_head=32,
            d_mlp=512,
            n_ctx=3,
            d_vocab=114,
            d_vocab_out=113,
        ),
    ),
    train_fraction=0.3,
    seed=0,
    steps=11_000,
    batch_size=None,
    learning_rate=1e-3,
    weight_decay=1.0,
)

_ADDER = AdderConfig()

ADDER_GPTJ = Recipe(
    name="adder-gptj",
    about="A GPT-J of 4 layers that adds the numbers 0 to 99, prompted `a+b=` with one token for "
    "each number. Its number vectors, in the embedding and in the unembedding, started from "
    "helices with the periods 2, 5, 10 and 100, so the helices in it were given and not found "
    "by training.",
    good_for="Trying out patching, helix fits and reports within seconds on GPT-J's architecture: "
    "parallel blocks, adjacent rotary pairs, biases, separate unembedding.",
    not_for="Showing that transformers find helices by themselves, prompts other than `a+b=`, "
    "or numbers from 100 on as operands: their vectors were never trained as inputs.",
    task="addition",
    template="{a}+{b}=",
    data=partial(addition, 100, _ADDER.plus, _ADDER.equals),
    net=AdderNet(_ADDER, embed=HelixStart(scale=1.0), unembed=HelixStart(scale=0.3)),
    train_fraction=0.8,
    seed=0,
    steps=1_000,
    batch_size=512,
    learning_rate=3e-3,
    weight_decay=0.1,
    warmup_steps=100,
    schedule="cosine",
    checkpoint_every=50,
)

RECIPES = {recipe.name: recipe for recipe in (CLOCK_113, ADDER_GPTJ)}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        MechnumError: where there is none.
    """
    if name not in RECIPES:
        raise MechnumError(f"there is no recipe {name!r}: choose from {', '.join(RECIPES)}")
    return RECIPES[name]
