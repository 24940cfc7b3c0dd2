"""Bayes updates of many beliefs at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, Int64

Beliefs = Float64[np.ndarray, "string state"]


def advanced(
    matrices: Float64[np.ndarray, "token state state"],
    beliefs: Beliefs,
    tokens: Int64[np.ndarray, " string"],
) -> tuple[Beliefs, Float64[np.ndarray, " string"]]:
    """Beliefs after one token each, and its probability; zeros where it cannot come."""
    joint = np.empty_like(beliefs)
    # Strings of one token together, so that each matrix is one product.
    order = np.argsort(tokens, kind="stable")
    present, first = np.unique(tokens[order], return_index=True)
    for token, rows in zip(present, np.split(order, first[1:]), strict=True):
        joint[rows] = beliefs[rows] @ matrices[token]
    return normalised(joint)


def continued(
    matrices: Float64[np.ndarray, "token state state"], beliefs: Float64[np.ndarray, "row state"]
) -> Float64[np.ndarray, "row token state"]:
    """Joint probabilities of each token and the state after it, as one product of matrices."""
    return np.tensordot(beliefs, matrices, axes=(1, 1))


def normalised(
    joint: Float64[np.ndarray, "*batch state"],
) -> tuple[Float64[np.ndarray, "*batch state"], Float64[np.ndarray, " *batch"]]:
    """Joint probabilities of token and state as beliefs and token probabilities."""
    probability = joint.sum(axis=-1)
    return joint / np.where(probability > 0, probability, 1.0)[..., None], probability


def followed(
    matrices: Float64[np.ndarray, "token state state"],
    beliefs: Beliefs,
    strings: Int64[np.ndarray, "string pos"],
) -> Iterator[tuple[Beliefs, Float64[np.ndarray, " string"]]]:
    """Beliefs after each token in turn, and the token's probability given those before it."""
    for tokens in np.ascontiguousarray(strings.T):
        beliefs, probability = advanced(matrices, beliefs, tokens)
        yield beliefs, probability


def histories(
    matrices: Float64[np.ndarray, "token state state"],
    start: Float64[np.ndarray, " state"],
    strings: Int64[np.ndarray, "string pos"],
) -> Float64[np.ndarray, "string pos_1 state"]:
    """Beliefs before the first token and after each; zeros from an impossible token on.

    There are few beginnings and many strings: those of all beginnings are computed once, in a
    table, as long as it has no more rows than there are strings.
    """
    n_strings, length = strings.shape
    n_tokens, n_states, _ = matrices.shape
    known, table = 0, np.broadcast_to(start, (1, 1, n_states))
    while known < length and len(table) * n_tokens <= max(n_strings, n_tokens):
        joint = (table[:, -1] @ matrices).swapaxes(0, 1)
        after = normalised(joint)[0].reshape(-1, 1, n_states)
        table = np.concatenate([table.repeat(n_tokens, axis=0), after], axis=1)
        known += 1
    row = strings[:, :known] @ n_tokens ** np.arange(known)[::-1]
    beginnings = table.reshape(len(table), -1)[row].reshape(n_strings, known + 1, n_states)
    if known == length:
        return beginnings
    beliefs = np.empty((n_strings, length + 1, n_states))
    beliefs[:, : known + 1] = beginnings
    rest = followed(matrices, beliefs[:, known], strings[:, known:])
    for position, (after, _) in enumerate(rest, start=known + 1):
        beliefs[:, position] = after
    return beliefs
