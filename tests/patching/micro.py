"""A micro transformer whose weights are small integers, and every effect worked out on paper.

Two layers of one head and one neuron (relu), no norm. The residual stream has six coordinates: the
tokens write x and s, head 0.0 writes h, neuron 0.0 m, head 1.0 y, and neuron 1.0 o.

| token | A | B | C | D |
|---|---|---|---|---|
| x | 1 | 1 | −1 | 1 |
| s | 0 | 2 | 0 | 1 |

The clean prompt is [A, C], the corrupt one [B, D]; their positions are −2 and −1.

| part | reads | writes |
|---|---|---|
| head 0.0 | q = s, k = −x·ln 2, v = x | z into h |
| neuron 0.0 | x, s, h: 1 − x + s − h | itself into m |
| head 1.0 | q = h − m, k = (x − s − h)·ln 2, v = x + h + 3m | z into y |
| neuron 1.0 | s, m, y: y − s − m − 1 | itself into o |
| metric | s + h + 2m + 2y + o = logit A − logit B, at −1 | |

The logits of C and D read x and o, which the metric does not see.

At −2 a head sees −2 alone, so z = v. At −1 its scores are whole multiples of ln 2, and with k in
these units

    d = q(−1) · (k(−2) − k(−1)),   w = 2^d / (1 + 2^d),   z = w v(−2) + (1 − w) v(−1)

    d    −2    −1    0     1     2
    w    1/5   1/3   1/2   2/3   4/5

Pairs in brackets are the values at (−2, −1).

The clean run: x = (1, −1), s = (0, 0)
--------------------------------------
    head 0.0     q(−1) = 0, so w = 1/2; v = (1, −1)              h = (1, 0)
    neuron 0.0   (1 − 1 + 0 − 1, 1 + 1 + 0 − 0) = (−1, 2)        m = (0, 2)
    head 1.0     q(−1) = 0 − 2 = −2; k = (0, −1); d = −2, w = 1/5
                 v = (2, 5); 2/5 + 20/5                          y = (2, 22/5)
    neuron 1.0   at −1: 22/5 − 0 − 2 − 1                         o(−1) = 7/5
    metric       0 + 0 + 4 + 44/5 + 7/5 = 71/5

The corrupt run: x = (1, 1), s = (2, 1)
---------------------------------------
    head 0.0     q(−1) = 1; k = (−1, −1), d = 0; v = (1, 1)      h = (1, 1)
    neuron 0.0   (1 − 1 + 2 − 1, 1 − 1 + 1 − 1) = (1, 0)         m = (1, 0)
    head 1.0     q(−1) = 1 − 0 = 1; k = (−2, −1); d = −1, w = 1/3
                 v = (5, 2); 5/3 + 4/3                           y = (5, 3)
    neuron 1.0   at −1: 3 − 1 − 0 − 1                            o(−1) = 1
    metric       1 + 1 + 0 + 6 + 1 = 9

Clean minus corrupt, which is what the edges carry
--------------------------------------------------
    embed      s −2 at −2; x −2 and s −1 at −1
    head 0.0   nothing at −2; h −1 at −1
    mlp 0      m −1 at −2; m +2 at −1
    head 1.0   y −3 at −2, where nothing reads it; y +7/5 at −1
    mlp 1      nothing at −2; o +2/5 at −1

Path effects (`edge`): the receiver alone reads the sum, what comes after it is computed again
----------------------------------------------------------------------------------------------
As long as neuron 1.0 stays on, a change of y(−1) by δ changes the metric by 2δ + δ = 3δ ("3δ").

    embed → q 0.0      0: the keys are equal, so d = 0 for every query.
    embed → k 0.g0     0: at −1, k = 1 and w = 1/5, but both values are 1. At −2, x is the same.
    embed → v 0.g0     at −1: v = (1, −1), h(−1) = 1/2 − 1/2 = 0; neuron 0.0: 1 − 1 + 1 − 0, m = 1;
                       q = 0 − 1 = −1; k(−1) = 1 − 1 − 0 = 0; d = −1·(−2 − 0) = 2, w = 4/5;
                       v(−1) = 1 + 0 + 3 = 4; y = 4 + 4/5 = 24/5;
                       neuron 1.0: 24/5 − 1 − 1 − 1 = 9/5;
                       metric 1 + 0 + 2 + 48/5 + 9/5 = 72/5, effect 27/5. At −2, x is the same.
    embed → mlp_in 0   at −2: 1 − 1 + 0 − 1 = −1, off: m(−2) = 0, v(−2) = 2, y = 2/3 + 4/3 = 2:
                       3δ = −3.
                       at −1: 1 + 1 + 0 − 1 = 1: m(−1) = 1, q = 0, w = 1/2, v(−1) = 5, y = 5;
                       neuron 1.0: 5 − 1 − 1 − 1 = 2; metric 1 + 1 + 2 + 10 + 2 = 16, effect 7.
                       both: w = 1/2, v = (2, 5), y = 7/2; neuron 1.0: 7/2 − 3 = 1/2;
                       metric 1 + 1 + 2 + 7 + 1/2 = 23/2, effect 5/2: not the sum of the two.
    embed → q 1.0      0: the query reads neither x nor s.
    embed → k 1.g0     at −2: k = 1 − 0 − 1 = 0, d = 1, w = 2/3, y = 10/3 + 2/3 = 4: 3δ = 3.
                       at −1: k = −1 − 0 − 1 = −2, d = 0, y = 7/2: 3δ = 3/2.
                       both: d = 2, w = 4/5, y = 4 + 2/5: 3δ = 21/5.
    embed → v 1.g0     at −1: v = −1 + 1 + 0 = 0, y = 5/3; neuron 1.0: 5/3 − 2 < 0, off;
                       metric 1 + 1 + 0 + 10/3 + 0 = 16/3, effect −11/3 (3δ would be −4).
    embed → mlp_in 1   at −1: s − 1, so o + 1.
    embed → logits     at −1: s − 1. (At −2 nothing reads these two receivers.)
    head 0.0 → mlp_in 0   at −1: 1 − 1 + 1 − 0 = 1: m(−1) = 1, as above: 7.
    head 0.0 → q 1.0      q = 0 − 0 = 0, w = 1/2, y = 7/2: 3δ = 3/2.
    head 0.0 → k 1.g0     at −1: k = 1 − 1 − 0 = 0, d = −2, w = 1/5, y = 1 + 8/5: 3δ = −6/5.
    head 0.0 → v 1.g0     at −1: v = 1 + 0 + 0 = 1, y = 5/3 + 2/3: 3δ = −2.
    head 0.0 → mlp_in 1   0: neuron 1.0 does not read h.
    head 0.0 → logits     −1.
    mlp 0 → q 1.0         q = 1 − 2 = −1, d = 1, w = 2/3, y = 4: 3δ = 3.
    mlp 0 → k 1.g0        0: the key does not read m.
    mlp 0 → v 1.g0        at −2: v = 2, y = 2: −3. At −1: v = 8, y = 5/3 + 16/3 = 7: 12. Both: 9.
    mlp 0 → mlp_in 1      3 − 1 − 2 − 1 < 0, off: o − 1, where a neuron without relu gives −2.
    mlp 0 → logits        2 · 2 = 4.
    head 1.0 → mlp_in 1   o + 7/5.
    head 1.0 → logits     2 · 7/5.
    mlp 1 → logits        2/5.

Total effects: the node's write replaced, everything after it computed again
----------------------------------------------------------------------------
    embed      at −2: s = 0. Neuron 0.0: −1, off, m(−2) = 0; k(−2) = 0, d = 1, w = 2/3;
               v(−2) = 2, y = 4/3 + 2/3 = 2: 3δ = −3.
               at −1: x = −1, s = 0. v = (1, −1) and w = 1/2, h = 0; m = 1 + 1 + 0 − 0 = 2;
               q = −2; k = (−2, −1), d = 2, w = 4/5; v = (5, 5), y = 5;
               neuron 1.0: 5 − 0 − 2 − 1 = 2; metric 0 + 0 + 4 + 10 + 2 = 16, effect 7.
               both: the clean run, 71/5 − 9 = 26/5.
    head 0.0   at −1: h = 0, as in embed → v 0.g0: 27/5, though the direct effect is −1.
    mlp 0      at −2: −3, by its value alone.
               at −1: m = 2, w = 2/3 by the query, v(−1) = 8, y = 10/3 + 8/3 = 6;
               neuron 1.0: 6 − 1 − 2 − 1 = 2; metric 1 + 1 + 4 + 12 + 2 = 20, effect 11.
               both: v = (2, 8), y = 4/3 + 8/3 = 4; neuron 1.0: 0;
               metric 1 + 1 + 4 + 8 = 14, effect 5.
    head 1.0   3δ = 21/5.
    mlp 1      2/5.
    q 0.0, k 0.g0   0, for the reasons above;  v 0.g0 as head 0.0.
    q 1.0      q = −2, d = 2, w = 4/5, y = 22/5: 21/5.
    k 1.g0     k = (0, −1): at −2, d = 1, y = 4: 3. At −1 it is the same.
    v 1.g0     at −2: v = (2, 2): −3. At −1: v = (5, 5): 6. Both: v = (2, 5), y = 2/3 + 10/3: 3.

Without a norm the direct effect is that of the edge to the logits, frozen or not.
"""

from __future__ import annotations

from fractions import Fraction as F
from math import log
from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from mechnum.tasks import pairs_from_tokens
from tests.patching.answers import Answers, ByPosition
from tests.patching.native import wrapped

A, B, C, D = range(4)
CLEAN, CORRUPT = [A, C], [B, D]
_COORDINATES = "xshmyo"

CONFIG = NativeConfig(
    n_layers=2, n_heads=1, d_model=6, d_head=1, d_mlp=1, n_ctx=2, d_vocab=4, d_vocab_out=4
)


def micro(dtype: torch.dtype = torch.float64) -> Any:
    """The wrapped net."""
    return wrapped(CONFIG, _tensors(), "micro", dtype)


def micro_pairs() -> Any:
    """The one pair."""
    return pairs_from_tokens([CLEAN], [CORRUPT], [A], [B])


def _vector(**coordinates: float) -> np.ndarray:
    return np.array([float(coordinates.get(name, 0)) for name in _COORDINATES])


def _tensors() -> dict[str, torch.Tensor]:
    def layer(number: int, q: Any, k: Any, v: Any, o: Any, into: Any, bias: float, out: Any):
        named = {
            "attn.W_Q": q.reshape(1, 6, 1),
            "attn.W_K": log(2) * k.reshape(1, 6, 1),
            "attn.W_V": v.reshape(1, 6, 1),
            "attn.W_O": o.reshape(1, 1, 6),
            "mlp.W_in": into.reshape(6, 1),
            "mlp.b_in": np.array([bias]),
            "mlp.W_out": out.reshape(1, 6),
        }
        return {f"blocks.{number}.{name}": value for name, value in named.items()}

    of = _vector
    arrays = {
        "embed.W_E": np.stack([of(x=1), of(x=1, s=2), of(x=-1), of(x=1, s=1)]),
        "pos_embed.W_pos": np.zeros((2, 6)),
        **layer(
            0, q=of(s=1), k=of(x=-1), v=of(x=1), o=of(h=1), into=of(x=-1, s=1, h=-1), bias=1,
            out=of(m=1),
        ),
        **layer(
            1, q=of(h=1, m=-1), k=of(x=1, s=-1, h=-1), v=of(x=1, h=1, m=3), o=of(y=1),
            into=of(y=1, s=-1, m=-1), bias=-1, out=of(o=1),
        ),
        "unembed.W_U": np.stack(
            [of(s=1, h=1, m=1, y=1), of(m=-1, y=-1, o=-1), of(x=1), of(o=2)], axis=1
        ),
    }  # fmt: skip
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


_NONE: ByPosition = (0, 0, 0)


def _last(effect: F | float) -> ByPosition:
    """Of a change that matters at −1 only."""
    return (0, effect, effect)


_EDGES: dict[str, ByPosition] = {
    "embed -> q 0.0": _NONE,
    "embed -> k 0.g0": _NONE,
    "embed -> v 0.g0": _last(F(27, 5)),
    "embed -> mlp_in 0": (-3, 7, F(5, 2)),
    "embed -> q 1.0": _NONE,
    "embed -> k 1.g0": (3, F(3, 2), F(21, 5)),
    "embed -> v 1.g0": _last(F(-11, 3)),
    "embed -> mlp_in 1": _last(1),
    "embed -> logits": _last(-1),
    "head 0.0 -> mlp_in 0": _last(7),
    "head 0.0 -> q 1.0": _last(F(3, 2)),
    "head 0.0 -> k 1.g0": _last(F(-6, 5)),
    "head 0.0 -> v 1.g0": _last(-2),
    "head 0.0 -> mlp_in 1": _NONE,
    "head 0.0 -> logits": _last(-1),
    "mlp 0 -> q 1.0": _last(3),
    "mlp 0 -> k 1.g0": _NONE,
    "mlp 0 -> v 1.g0": (-3, 12, 9),
    "mlp 0 -> mlp_in 1": _last(-1),
    "mlp 0 -> logits": _last(4),
    "head 1.0 -> mlp_in 1": _last(F(7, 5)),
    "head 1.0 -> logits": _last(F(14, 5)),
    "mlp 1 -> logits": _last(F(2, 5)),
}
_DIRECTS = {
    sender: _EDGES[f"{sender} -> logits"]
    for sender in ("embed", "head 0.0", "mlp 0", "head 1.0", "mlp 1")
}

ANSWERS = Answers(
    clean_metric=F(71, 5),
    corrupt_metric=9,
    totals={
        "embed": (-3, 7, F(26, 5)),
        "head 0.0": _last(F(27, 5)),
        "mlp 0": (-3, 11, 5),
        "head 1.0": _last(F(21, 5)),
        "mlp 1": _last(F(2, 5)),
        "q 0.0": _NONE,
        "k 0.g0": _NONE,
        "v 0.g0": _last(F(27, 5)),
        "q 1.0": _last(F(21, 5)),
        "k 1.g0": (3, 0, 3),
        "v 1.g0": (-3, 6, 3),
    },
    directs=_DIRECTS,
    frozen_directs=_DIRECTS,
    edges=_EDGES,
)
