"""Finds a model by name, folder or file, and wraps it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from mechnum.errors import MechnumError
from mechnum.models.devices import device_of
from mechnum.models.fetched import FETCHED
from mechnum.models.model import Model
from mechnum.models.net_file import NET_FILE, load_net
from mechnum.models.quiet import quiet_transformers
from mechnum.models.spec import spec_from_hf
from mechnum.models.wrap import wrap

CARD_FILE = "card.json"
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
# Buffers in old files.
_NO_WEIGHTS = ("attn.bias", "attention.bias", ".masked_bias", "rotary_emb.inv_freq")


def bundled() -> dict[str, Path]:
    """The models that come with the package: name → folder."""
    root = Path(str(resources.files("mechnum.models") / "bundled"))
    return {card.parent.name: card.parent for card in sorted(root.glob(f"*/{CARD_FILE}"))}


def load(name: str | Path, device: str | None = None, dtype: str | None = None) -> Model:
    """Load a model and verify its canonical decoder against it.

    Args:
        name: a bundled model (`mechnum models` lists them), `smollm2`, a local folder in Hugging
            Face's format, a GGUF file, a `net.toml`, or a Hugging Face id.
        device: as torch names it; the CPU by default.
        dtype: "float32" (default), "bfloat16", "float16" or "float64".

    Raises:
        MechnumError: where there is no such model, device or precision, where the files are
            damaged, and where the architecture is not supported.
    """
    place, precision = device_of(device), _dtype(dtype)
    name = str(name)
    folder = bundled().get(name)
    if folder is not None:
        model = _load_path(folder, name, place, precision)
    elif name in FETCHED:
        model = _load_path(FETCHED[name].folder(), name, place, precision)
    elif Path(name).exists():
        model = _load_path(Path(name), name, place, precision)
    elif _looks_like_path(name):
        raise MechnumError(f"there is no file or folder {name}: correct the path")
    else:
        model = _load_hub(name, place, precision)
    return model


def load_tokenizer(name: str | Path) -> Any:
    """The tokenizer of a model that `load` knows, without its weights; None where it has none.

    Raises:
        MechnumError: where there is no such model, or its tokenizer is damaged.
    """
    name = str(name)
    folder = _tokenizer_folder(name)
    if folder is not None:
        return _tokenizer_in(folder)
    from transformers import AutoTokenizer

    with quiet_transformers():
        try:
            return AutoTokenizer.from_pretrained(name, local_files_only=True)
        except (OSError, ValueError, KeyError):
            _reach_hub(name)
        return AutoTokenizer.from_pretrained(name)


def _tokenizer_folder(name: str) -> Path | None:
    """The folder that holds a model's tokenizer; None for Hugging Face ids."""
    if name in FETCHED:
        return FETCHED[name].folder()
    path = bundled().get(name, Path(name))
    if path.suffix == ".gguf" and path.exists():
        from mechnum.models.gguf import gguf_folder

        return gguf_folder(path)
    if path.exists():
        return path
    if _looks_like_path(name):
        raise MechnumError(f"there is no file or folder {name}: correct the path")
    return None


def _load_path(path: Path, name: str, device: torch.device, dtype: torch.dtype) -> Model:
    if path.is_dir():
        if (path / NET_FILE).is_file():
            return _load_native(path / NET_FILE, name, device, dtype)
        if not (path / "config.json").is_file():
            raise MechnumError(
                f"folder {path} has neither config.json nor {NET_FILE}: give a model's folder"
            )
        if not any(path.glob("*.safetensors")):
            raise MechnumError(
                f"folder {path} has no weights in safetensors files: save the model with "
                "save_pretrained (other formats are not read, since they can run code)"
            )
        return _load_folder(path, name, device, dtype)
    if path.suffix == ".toml":
        return _load_native(path, name, device, dtype)
    if path.suffix == ".gguf":
        from mechnum.models.gguf import gguf_folder

        return _load_folder(gguf_folder(path), name, device, dtype)
    raise MechnumError(f"{path} is not a model: give a folder, a .gguf file or a net's .toml file")


def _load_hub(name: str, device: torch.device, dtype: torch.dtype) -> Model:
    """A Hugging Face id: from the local cache where it is whole, else from the hub."""
    with quiet_transformers():
        try:
            return _wrap_hf(*_read_hub(name, dtype, local_files_only=True), name, device)
        except OSError:
            _reach_hub(name)
        try:
            return _wrap_hf(*_read_hub(name, dtype), name, device)
        except OSError as error:
            raise MechnumError(
                f"model {name!r} could not be read from the hub ({first_line(error)}): "
                "mechnum reads safetensors only, so give an id or folder that has them"
            ) from None


def _load_folder(folder: Path, name: str, device: torch.device, dtype: torch.dtype) -> Model:
    from safetensors import SafetensorError

    with quiet_transformers():
        try:
            model = _read_weights(str(folder), name, dtype, local_files_only=True)
        except MechnumError:
            raise
        except SafetensorError as error:
            raise MechnumError(
                f"the weights in {folder} are damaged ({first_line(error)}): get them again"
            ) from None
        except Exception as error:  # what transformers raises on a bad configuration is its own
            raise MechnumError(
                f"{folder} cannot be read as a Hugging Face model ({first_line(error)}): "
                "check the folder"
            ) from None
        return _wrap_hf(model, _tokenizer_in(folder), name, device, card_of(folder))


def _read_hub(name: str, dtype: torch.dtype, **where: bool) -> tuple[Any, Any]:
    """Model and tokenizer."""
    from transformers import AutoTokenizer

    model = _read_weights(name, name, dtype, **where)
    return model, AutoTokenizer.from_pretrained(name, **where)


def _read_weights(source: str, name: str, dtype: torch.dtype, **where: bool) -> Any:
    """The transformers model, where the weights are those that its configuration asks for."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(source, **where)
    # An unsupported architecture is refused before its weights are read.
    spec_from_hf(config)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        source,
        config=config,
        dtype=dtype,
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # refused below, by name
        **where,
    )
    model, report = loaded
    _check_weights(name, report)
    return model


def _check_weights(name: str, report: Mapping[str, Any]) -> None:
    """Refuse weights that transformers would replace by random ones, or leave out.

    What stands beside the blocks, such as another head, is no part of the model that is read, and
    the masks and waves that old files hold are none of its weights.
    """
    if missing := sorted(report["missing_keys"]):
        raise MechnumError(
            f"{name} lacks {len(missing)} weights (first: {missing[0]}): get the model again"
        )
    if other := sorted(report["mismatched_keys"]):
        key, found, wanted = other[0]
        raise MechnumError(
            f"{len(other)} weights of {name} have other shapes than its config.json says (first: "
            f"{key}, {tuple(found)} instead of {tuple(wanted)}): correct it, or get the model again"
        )
    unread = sorted(
        key
        for key in report["unexpected_keys"]
        if re.search(r"\.\d+\.", key) and not key.endswith(_NO_WEIGHTS)
    )
    if unread:
        raise MechnumError(
            f"config.json of {name} has no place for {len(unread)} of its weights (first: "
            f"{unread[0]}): correct it, or get the model again"
        )


def _wrap_hf(
    model: Any,
    tokenizer: Any,
    name: str,
    device: torch.device,
    card: Mapping[str, Any] = MappingProxyType({}),
) -> Model:
    return wrap(
        model.to(device).eval(),
        tokenizer,
        name,
        template=card.get("template"),
        default_task=card.get("task"),
    )


def _tokenizer_in(folder: Path) -> Any:
    """The tokenizer in a local folder; None where the folder holds weights alone."""
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        return None
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # the tokenizers library raises plain Exceptions
        raise MechnumError(
            f"the tokenizer in {folder} cannot be read ({first_line(error)}): get it again"
        ) from None


def _reach_hub(name: str) -> None:
    """Refuse in one line, and at once, what the hub does not have or cannot be asked for.

    transformers itself would try again for half a minute, and print each try.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    known = ", ".join([*bundled(), *FETCHED])
    try:
        HfApi().model_info(name, timeout=10)
    except GatedRepoError:
        raise MechnumError(
            f"model {name!r} needs its licence accepted: do so on its page, then `hf auth login`"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise MechnumError(
            f"there is no model {name!r}: use a Hugging Face id, a path, or one of {known}"
        ) from None
    except Exception:  # the hub's HTTP library, and with it the errors, differs by version
        raise MechnumError(
            f"model {name!r} is not on this machine and the hub cannot be reached: check the name "
            f"(without a network there are {known}, folders and files) and the network"
        ) from None


def first_line(error: Exception) -> str:
    """What an error of a library says, without its further lines; two where the first ends in :."""
    first, *further = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join([first, *further[:1]] if first.rstrip().endswith(":") else [first]).strip()


def _load_native(path: Path, name: str, device: torch.device, dtype: torch.dtype) -> Model:
    from mechnum.models.native import native_bridge

    net, file = load_net(path)
    bridge = native_bridge(net.to(device, dtype), file.net, name)
    return wrap(bridge, name=name, default_task=None if file.task is None else file.task.text)


def card_of(folder: Path) -> dict[str, Any]:
    """What the card in a model's folder says; nothing where there is none."""
    card = folder / CARD_FILE
    return json.loads(card.read_text(encoding="utf-8")) if card.is_file() else {}


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "~", os.sep)) or name.endswith((".gguf", ".toml"))


def _dtype(name: str | None) -> torch.dtype:
    names = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float64": torch.float64,
    }
    if (name or "float32") not in names:
        raise MechnumError(f"dtype {name!r} is not supported: use one of {', '.join(names)}")
    return names[name or "float32"]
