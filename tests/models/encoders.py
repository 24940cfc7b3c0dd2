"""A tiny BERT in a folder, as sentence encoders come."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("red", "blue", "house", "##s", "the")


def word_pieces(n_numbers: int) -> PreTrainedTokenizerFast:
    """BERT's way: lower case, numbers in their vocabulary are one token, others pieces."""
    known = [*SPECIAL, *map(str, range(n_numbers)), *(f"##{digit}" for digit in range(10)), *WORDS]
    tokenizer = Tokenizer(
        models.WordPiece({word: index for index, word in enumerate(known)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def encoder_folder(folder: Path, n_numbers: int = 30, seed: int = 0) -> Path:
    """Config, random weights and tokenizer."""
    tokenizer = word_pieces(n_numbers)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        net = BertModel(config)
    # Not by save_pretrained, which draws a bar.
    config.architectures = ["BertModel"]
    config.save_pretrained(folder)
    save_file(dict(net.state_dict()), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    return folder
