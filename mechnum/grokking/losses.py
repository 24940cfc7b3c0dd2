"""Losses over all pairs: of the logits, of their key part, and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.special import logsumexp

from mechnum.grokking.logits import checked_logits, excluded_logits, restricted_logits
from mechnum.grokking.modulus import checked_pairs, sums


def pair_losses(logits: Any) -> Float64[np.ndarray, "p p"]:
    """Cross-entropy of the right class (a + b) mod p for each pair, in nats.

    Exact where it is far below the rounding of 1 in float64, which grokked nets reach: log(1 + x)
    is computed from x, the sum over the wrong classes.

    Raises:
        InvalidInput: on logits that are not finite [p, p, p], and on a p that is no prime ≥ 3.
    """
    logits = checked_logits(logits)
    answers = sums(len(logits))[..., None]
    margins = logits - np.take_along_axis(logits, answers, axis=-1)
    np.put_along_axis(margins, answers, -np.inf, axis=-1)
    return np.logaddexp(0.0, logsumexp(margins, axis=-1))


def mean_loss(logits: Any, pairs: Any = None) -> float:
    """Mean of `pair_losses`.

    Args:
        pairs: which pairs count: True for each pair [p, p], or indices a·p + b; all by default.
    """
    losses = pair_losses(logits)
    return float(losses[checked_pairs(pairs, len(losses))].mean())


def restricted_loss(logits: Any, keys: Any, pairs: Any = None) -> float:
    """Loss of the key part of the logits alone (Nanda et al. 2023, section 5.1).

    Below the loss of the whole net while the rest is still a memory of the training pairs.

    Args:
        logits: [p, p, p] over a, b and class.
        keys: key frequencies.
        pairs: as in `mean_loss`.
    """
    return mean_loss(restricted_logits(logits, keys), pairs)


def excluded_loss(logits: Any, keys: Any, pairs: Any = None) -> float:
    """Loss without the key part (Nanda et al. 2023, section 5.1, who take the training pairs).

    It falls while the net memorises and rises while the circuit takes over. With all keys it is the
    paper's curve; with one at a time it is what the authors' code computes.
    """
    return mean_loss(excluded_logits(logits, keys), pairs)
