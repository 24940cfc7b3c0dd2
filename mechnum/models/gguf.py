"""GGUF files (llama.cpp's format) of Llama models, turned once into Hugging Face folders.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from mechnum.errors import MechnumError
from mechnum.models.cache import build_once, cache_root
from mechnum.models.gguf_config import llama_config
from mechnum.models.gguf_tokenizer import gguf_tokenizer
from mechnum.progress import track, working

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderTensor
    from transformers import PreTrainedTokenizerBase

# Counts up when the same file converts to another folder than before.
_CONVERTER = 1


def gguf_folder(path: str | Path) -> Path:
    """The Hugging Face folder of a GGUF file, made on the first call and then kept in the cache.

    The folder has `config.json`, `model.safetensors` and the tokenizer's files (none where
    the GGUF file has no tokenizer). Weights are dequantised to float32, which holds every
    quantised value exactly. The folder is found again by the file's content, not by its name.

    Raises:
        MechnumError: not a GGUF file, damaged or cut short, not a plain Llama, an unknown
            quantisation or tokenizer, or a cache folder that cannot be written.
    """
    path = Path(path).expanduser()
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise MechnumError(
            f"{path} cannot be read ({error.strerror}): give the path of a GGUF file"
        ) from error
    return build_once(folder_of(digest), lambda folder: convert(path, folder))


def folder_of(digest: str) -> Path:
    """Where the converted folder of the GGUF file with this SHA-256 (hexadecimal) lies."""
    return cache_root() / "gguf" / f"{digest[:16]}-{_CONVERTER}"


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def convert(path: Path, folder: Path) -> None:
    """Write the Hugging Face folder of the GGUF file at `path` into `folder`, which exists.

    Raises:
        MechnumError: as `gguf_folder`.
        OSError: `folder` cannot be written.
    """
    with working("reading the GGUF file"):
        reader = _open(path)
        try:
            metadata = {name: field.contents() for name, field in reader.fields.items()}
        except UnicodeDecodeError as error:
            raise _unreadable(path, str(error)) from error
        architecture = metadata.get("general.architecture")
        if architecture != "llama":
            raise MechnumError(
                f"{path} holds a model of the architecture {architecture!r}, but of GGUF files "
                "only 'llama' is read: use the model's Hugging Face folder"
            )
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        embedding = _tensor(path, tensors, "token_embd.weight")
        factors = tensors.pop("rope_freqs.weight", None)
        config = llama_config(
            metadata,
            d_vocab=int(embedding.shape[-1]),
            tied="output.weight" not in tensors,
            rope_factors=None if factors is None else _dequantized(path, factors),
        )
        tokenizer = gguf_tokenizer(metadata)
    weights = _weights(path, tensors, config)
    with working("writing the converted model"):
        _write(folder, config, weights, tokenizer)


def _write(
    folder: Path,
    config: dict[str, Any],
    weights: dict[str, Float[np.ndarray, "..."]],
    tokenizer: PreTrainedTokenizerBase | None,
) -> None:
    from safetensors.numpy import save_file

    config_file, weights_file = folder / "config.json", folder / "model.safetensors"
    config_file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    try:
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        save_file(weights, weights_file, metadata={"format": "pt"})
    except (
        Exception
    ) as error:  # tokenizers reports a full disk so, safetensors by a class of its own
        raise OSError(str(error)) from error
    shutil.copymode(config_file, weights_file)  # safetensors lets only the owner read its files


class _Target(NamedTuple):
    """Where a tensor of the file goes in transformers' Llama."""

    name: str
    shape: tuple[int, ...]
    rotary_heads: int | None = None  # heads whose rows llama.cpp has reordered


def _targets(config: dict[str, Any]) -> dict[str, _Target]:
    d_model, d_mlp = config["hidden_size"], config["intermediate_size"]
    n_heads, n_kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    d_q, d_kv = n_heads * config["head_dim"], n_kv_heads * config["head_dim"]
    vocab = (config["vocab_size"], d_model)
    targets = {
        "token_embd.weight": _Target("model.embed_tokens.weight", vocab),
        "output_norm.weight": _Target("model.norm.weight", (d_model,)),
    }
    if not config["tie_word_embeddings"]:
        targets["output.weight"] = _Target("lm_head.weight", vocab)
    for layer in range(config["num_hidden_layers"]):
        for name, target in {
            "attn_norm": _Target("input_layernorm", (d_model,)),
            "attn_q": _Target("self_attn.q_proj", (d_q, d_model), n_heads),
            "attn_k": _Target("self_attn.k_proj", (d_kv, d_model), n_kv_heads),
            "attn_v": _Target("self_attn.v_proj", (d_kv, d_model)),
            "attn_output": _Target("self_attn.o_proj", (d_model, d_q)),
            "ffn_norm": _Target("post_attention_layernorm", (d_model,)),
            "ffn_gate": _Target("mlp.gate_proj", (d_mlp, d_model)),
            "ffn_up": _Target("mlp.up_proj", (d_mlp, d_model)),
            "ffn_down": _Target("mlp.down_proj", (d_model, d_mlp)),
        }.items():
            targets[f"blk.{layer}.{name}.weight"] = target._replace(
                name=f"model.layers.{layer}.{target.name}.weight"
            )
    return targets


def _weights(
    path: Path, tensors: dict[str, ReaderTensor], config: dict[str, Any]
) -> dict[str, Float[np.ndarray, "..."]]:
    targets = _targets(config)
    if unknown := sorted(tensors.keys() - targets.keys()):
        raise MechnumError(
            f"{path} has the tensor {unknown[0]}, which a plain Llama does not have: use the "
            "model's Hugging Face folder"
        )
    weights = {}
    for name, target in track(targets.items(), "dequantising"):
        tensor = _tensor(path, tensors, name)
        shape = tuple(int(size) for size in reversed(tensor.shape))
        if shape != target.shape:
            raise MechnumError(
                f"the tensor {name} of {path} has the shape {shape} where its metadata say "
                f"{target.shape}: get the file again"
            )
        weight = _dequantized(path, tensor)
        if target.rotary_heads is not None:
            weight = _half_split_rows(weight, target.rotary_heads)
        weights[target.name] = np.ascontiguousarray(weight)
    return weights


def _half_split_rows(
    weight: Float[np.ndarray, "row d_model"], n_heads: int
) -> Float[np.ndarray, "row d_model"]:
    """Undo llama.cpp's order of the query and key rows.

    llama.cpp rotates the adjacent rows (2i, 2i+1) of a head, transformers' Llama the rows
    (i, i + d_head/2), so llama.cpp's converter interleaves the halves of each head.
    """
    pairs = weight.reshape(n_heads, -1, 2, weight.shape[-1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def _dequantized(path: Path, tensor: ReaderTensor) -> Float[np.ndarray, "..."]:
    from gguf import dequantize

    try:
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
    except NotImplementedError as error:
        raise MechnumError(
            f"the quantisation {tensor.tensor_type.name} of {tensor.name} in {path} cannot be "
            "read: use a file with another quantisation, such as Q8_0 or Q4_K"
        ) from error


def _tensor(path: Path, tensors: dict[str, ReaderTensor], name: str) -> ReaderTensor:
    if name not in tensors:
        raise MechnumError(
            f"{path} lacks the tensor {name}: get the file again (all parts in one, if it is split)"
        )
    return tensors[name]


def _open(path: Path) -> GGUFReader:
    from gguf import GGUFReader

    class WholeReader(GGUFReader):
        """Refuses to read past the end, where GGUFReader goes on with fewer values."""

        def _get(
            self,
            offset: int,
            dtype: Any,
            count: Any = 1,  # numpy integers too
            override_order: Any = None,
        ) -> NDArray[Any]:
            if int(offset) + np.dtype(dtype).itemsize * int(count) > len(self.data):
                raise EOFError
            return super()._get(offset, dtype, count, override_order)

    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise MechnumError(f"{path} is not a GGUF file: give the path of a GGUF file")
    try:
        reader = WholeReader(path)
    except EOFError as error:
        raise MechnumError(f"{path} is cut short: get the file again") from error
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise _unreadable(path, str(error)) from error
    if reader.byte_order != "I":
        raise _unreadable(path, "its byte order is not this machine's")
    return reader


def _unreadable(path: Path, reason: str) -> MechnumError:
    reason = re.sub(r"np\.\w+\((\w+)\)", r"\1", " ".join(reason.split()))  # plain numbers
    return MechnumError(
        f"{path} cannot be read as GGUF ({reason}): get the file again, or one "
        "with another quantisation"
    )
