"""What a model's weights are, to the last bit: what is kept on disk is found again by it."""

from __future__ import annotations

import hashlib

import torch

from mechnum.models.model import Model


def weights_digest(model: Model) -> str:
    """SHA-256 of a model's shapes and of all of its weights.

    `Model.fingerprint` samples them, which tells models apart, but not a model from itself after an
    edit.
    """
    digest = hashlib.sha256(repr(model.spec).encode())
    for name, tensor in sorted(model.wrapped.state_dict().items()):
        digest.update(name.encode())
        flat = tensor.detach().reshape(-1).contiguous().view(torch.uint8)
        # Some at a time: a model on a GPU need not fit into the machine's memory.
        for part in flat.split(2**26):
            digest.update(part.cpu().numpy().data)
    return digest.hexdigest()
