"""A small Llama that reads texts digit by digit, and texts with numbers for it."""

from __future__ import annotations

from functools import cache

from transformers import LlamaConfig, LlamaForCausalLM

import mechnum as mn
from mechnum.tasks.contexts import ContextPrompts, context_prompts
from tests.fixtures import perturbed
from tests.tasks.small_tokenizers import digit_level


@cache
def reader() -> mn.Model:
    config = LlamaConfig(
        vocab_size=len(digit_level()),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=160,
        # None of the bytes that texts are made of.
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=None,
    )
    return mn.wrap(perturbed(LlamaForCausalLM(config)), tokenizer=digit_level(), name="reader")


@cache
def texts(n: int = 40, per_number: int = 1) -> tuple[ContextPrompts, ...]:
    return context_prompts(reader(), ("time", "finance"), range(100, 100 + n), per_number)
