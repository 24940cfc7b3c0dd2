"""The recipes that made the bundled models."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mechnum.errors import MechnumError
from mechnum.models.adders import GPTJAdder, LlamaAdder, PythiaAdder
from mechnum.models.native import NativeConfig
from mechnum.training.data import addition, modular_addition
from mechnum.training.nets import AdderNet, HelixStart, NativeNet
from mechnum.training.recipe import Recipe
from mechnum.training.strings import process_strings

CLOCK_113 = Recipe(
    name="clock-113",
    about="One layer without norms that adds modulo 113, grokked (Nanda et al. 2023, section 3). "
    "Unlike theirs, its attention has biases.",
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
    snapshot_every=500,
)

_ZHONG = NativeConfig(
    n_layers=1, n_heads=4, d_model=128, d_head=32, d_mlp=512, n_ctx=2, d_vocab=59, d_vocab_out=59
)

CLOCK_59 = Recipe(
    name="clock-59",
    about="One layer without norms that adds modulo 59, prompted `a b` without `=`, with plain "
    "attention: attention rate 1, under which Zhong et al. 2023 find the clock algorithm. Unlike "
    "theirs, its attention has biases.",
    good_for="Telling clock from pizza, beside pizza-59, which differs in the attention rate "
    "alone, within seconds.",
    not_for="Claims about language models: it has one layer, no norms, and one task.",
    task="modular_addition:59",
    template=None,
    data=partial(modular_addition, 59, equals=False),
    net=NativeNet(_ZHONG),
    train_fraction=0.8,
    seed=0,
    steps=5_000,
    batch_size=None,
    learning_rate=1e-3,
    weight_decay=2.0,
    snapshot_every=200,
)

PIZZA_59 = replace(
    CLOCK_59,
    name="pizza-59",
    about="One layer without norms that adds modulo 59, prompted `a b` without `=`, whose heads "
    "weigh all positions alike: attention rate 0, under which Zhong et al. 2023 find the pizza "
    "algorithm. Unlike theirs, its attention has biases.",
    good_for="Telling clock from pizza, beside clock-59, which differs in the attention rate "
    "alone, within seconds.",
    net=NativeNet(replace(_ZHONG, attention_rate=0.0)),
)

_GPTJ = GPTJAdder()
_EMBED, _UNEMBED = HelixStart(scale=1.0), HelixStart(scale=0.3)
_GIVEN = (
    "Its number vectors, in the embedding and in the unembedding, started from helices with the "
    "periods 2, 5, 10 and 100, so the helices in it were given and not found by training."
)
_UNTRAINED = (
    "prompts other than `a+b=`, or numbers from 100 on as operands: their vectors were never "
    "trained as inputs."
)

ADDER_GPTJ = Recipe(
    name="adder-gptj",
    about="A GPT-J of 4 layers that adds the numbers 0 to 99, prompted `a+b=` with one token for "
    f"each number. {_GIVEN}",
    good_for="Trying out patching, helix fits and reports within seconds on GPT-J's architecture: "
    "parallel blocks, adjacent rotary pairs, biases, separate unembedding.",
    not_for=f"Showing that transformers find helices by themselves, {_UNTRAINED}",
    task="addition",
    template="{a}+{b}=",
    data=partial(addition, 100, _GPTJ.plus, _GPTJ.equals),
    net=AdderNet(_GPTJ, embed=_EMBED, unembed=_UNEMBED),
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

ADDER_PYTHIA = replace(
    ADDER_GPTJ,
    name="adder-pythia",
    about="A GPT-NeoX of 4 layers, built like Pythia, that adds the numbers 0 to 99, prompted "
    f"`a+b=` with one token for each number. {_GIVEN}",
    good_for="Trying out patching, helix fits and reports within seconds on Pythia's "
    "architecture: parallel blocks with two norms, rotary halves on a quarter of each head, one "
    "matrix for queries, keys and values.",
    net=AdderNet(PythiaAdder(), embed=_EMBED, unembed=_UNEMBED),
)

ADDER_LLAMA = replace(
    ADDER_GPTJ,
    name="adder-llama",
    about="A Llama of 4 layers that adds the numbers 0 to 99, prompted `a+b=` with one token for "
    f"each number. {_GIVEN}",
    good_for="Trying out patching, helix fits and reports within seconds on Llama's "
    "architecture: sequential blocks, RMS norms, gated MLPs, two query heads for each key-value "
    "group, no biases.",
    net=AdderNet(LlamaAdder(), embed=_EMBED, unembed=_UNEMBED),
)

ADDER_SCRATCH = replace(
    ADDER_GPTJ,
    name="adder-scratch",
    about="adder-gptj from random number vectors: the same GPT-J, prompts, split and steps, and "
    "nothing else given (the control of Zhou et al. 2024, section 5).",
    good_for="A control beside adder-gptj and adder-rescued: what a net does that had to find its "
    "number vectors by itself.",
    not_for=f"Adding: it fails where they do not. Nor for {_UNTRAINED}",
    net=AdderNet(_GPTJ),
)

ADDER_RESCUED = replace(
    ADDER_GPTJ,
    name="adder-rescued",
    about="adder-scratch rescued by its embedding: the same GPT-J, prompts, split and steps, but "
    "the number vectors of the embedding lie on helices with the periods 2, 5, 10 and 100 and are "
    "not trained. All else, the unembedding too, started at random (after Zhou et al. 2024, "
    "section 5, who froze the token embeddings of another model).",
    good_for="What Fourier features in the embedding alone do to a net, beside adder-scratch and "
    "adder-gptj, and which code it finds for its answers.",
    not_for=f"Showing that transformers find helices in their embedding, {_UNTRAINED}",
    net=AdderNet(_GPTJ, embed=_EMBED, freeze_embed=True),
)

_PROCESS_NET = NativeConfig(
    n_layers=4,
    n_heads=1,
    d_model=64,
    d_head=8,
    d_mlp=256,
    n_ctx=10,
    d_vocab=3,
    d_vocab_out=3,
    normalization_type="LN",
)

MESS3 = Recipe(
    name="mess3",
    about="Four layers that predict Mess3 (x = 0.05, a = 0.85), shaped like the net of Shai et al. "
    "2024, section 3, and trained by thousands of steps of AdamW where theirs took a million of "
    "SGD.",
    good_for="Belief states within seconds: its last residual holds the observer's beliefs about "
    "three hidden states, linearly, as a fractal in a triangle.",
    not_for="Claims about language models: three tokens, and strings of ten of them.",
    task="mess3:0.05,0.85",
    template=None,
    data=partial(process_strings, "mess3:0.05,0.85", 10),
    net=NativeNet(_PROCESS_NET),
    train_fraction=None,
    seed=0,
    steps=6_000,
    batch_size=128,
    learning_rate=3e-3,
    weight_decay=0.0,
    warmup_steps=100,
    schedule="cosine",
    checkpoint_every=250,
    snapshot_every=500,
)

RRXOR = replace(
    MESS3,
    name="rrxor",
    about="Four layers that predict RRXOR, two random bits and their exclusive or, over and over "
    "(Shai et al. 2024, section 3; theirs is twice as wide).",
    good_for="Belief states that the last layer does not hold by itself: different beliefs "
    "predict the same next bit, and are told apart by all layers together.",
    not_for="Claims about language models: two tokens, and strings of ten of them.",
    task="rrxor",
    data=partial(process_strings, "rrxor", 10),
    net=NativeNet(replace(_PROCESS_NET, n_heads=4, d_head=16, d_vocab=2, d_vocab_out=2)),
)

CARRY = replace(
    MESS3,
    name="carry",
    about="Two layers that predict column addition from the least significant digit on: the digits "
    "of both numbers as one token, then the digit of their sum. A quarter of the columns show a "
    "question mark in place of the digits, so that the carry has to be guessed from the sum.",
    good_for="Belief states of an addition: what the net knows of the carry, beside the exact "
    "probability.",
    not_for="How language models add: it reads digits in columns, the least significant first.",
    task="carry:10,0.25",
    data=partial(process_strings, "carry:10,0.25", 8),
    net=NativeNet(
        replace(
            _PROCESS_NET, n_layers=2, n_heads=4, d_head=16, n_ctx=8, d_vocab=111, d_vocab_out=111
        )
    ),
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        CLOCK_113,
        CLOCK_59,
        PIZZA_59,
        ADDER_GPTJ,
        ADDER_PYTHIA,
        ADDER_LLAMA,
        ADDER_SCRATCH,
        ADDER_RESCUED,
        MESS3,
        RRXOR,
        CARRY,
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        MechnumError: where there is none.
    """
    if name not in RECIPES:
        raise MechnumError(f"there is no recipe {name!r}: choose from {', '.join(RECIPES)}")
    return RECIPES[name]
