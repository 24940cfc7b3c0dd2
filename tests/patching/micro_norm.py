"""A micro transformer with LayerNorms, and every effect worked out as a closed form.

Two layers of one head and one neuron (relu). The residual stream has eight coordinates that hold
four features and a mean: a feature's direction is (1, −1) on two coordinates of its own, the mean's
is (1, …, 1). So a LayerNorm drops the mean, and multiplies every feature by

    g(S) = 1 / √(S/4 + ε),   where S is the sum of the squared features and ε = 10⁻⁵

(the mean square of 8 coordinates is 2S/8), and then by its weight, which is the same number for all
coordinates here. `f^` stands for g(S)·f.

Prompts of two tokens, positions −2 and −1; only the first differs:

| token | x | t | mean |
|---|---|---|---|
| A (clean) | 1 | 1 | 3 |
| B (corrupt) | −2 | 1 | 0 |
| = (both, last) | 0 | 2 | 1 |

| part | norm | reads | writes |
|---|---|---|---|
| head 0.0 | ×1 | v = x^; q = k = 0, so that it averages | 2z into h |
| neuron 0.0 | ×1 | h^ | itself into the mean |
| head 1.0 | ×2 | q = h^, k = x^, v = t^ (each ×2) | z into y |
| neuron 1.0 | ×1, +½ in y | y^ + ½ − h^ | minus itself into t |
| logits | ×3, +1 in y | h^ + 2y^ − t^ (×3) + 2 for logit A − logit B | |

The runs
--------
S is 1 + 1 = 2 for A, 4 + 1 = 5 for B and 4 for `=`. x is 0 at the last token, so its value is 0:

    head 0.0, v(−2):        clean g(2)            corrupt −2g(5)
    h(−2) = 2 v(−2):        clean 2g(2)           corrupt −4g(5)
    h(−1) = 2 · v(−2)/2:    clean g(2)            corrupt −2g(5)

Neuron 0.0 fires on the clean prompt only (h > 0) and writes to the mean, which no norm passes on.
In layer 1, S(−2) = x² + 1 + h(−2)² and S(−1) = 4 + h(−1)²:

    q(−1) = 2 h(−1) g(S(−1)),   k(−2) = 2 x g(S(−2)),   k(−1) = 0
    v(−2) = 2 g(S(−2)),         v(−1) = 4 g(S(−1))
    y(−1) = w v(−2) + (1 − w) v(−1)   with   w = 1 / (1 + exp(−q(−1) k(−2)))

and at −1, with S = t² + h² + y² at each of the two norms:

    r = relu((y − h) g(S) + ½) at t = 2,   metric = 3 g(S) (h + 2y − t) + 2 at t = 2 − r,

that is, to three digits: clean h = 1.41, y = 1.37, r = 0.47, metric 8.29; corrupt h = −1.79,
y = 0.96, r = 2.43, metric 3.63.

What every effect is
--------------------
Below, the names in capitals are the corrupt run's scalars, those with a C in front the clean run's.
Each entry puts clean values exactly where the edge or the patch puts them. The zeros:

- `embed -> q 0.0`, `-> k 0.g0`: the head's query and key weights are 0.
- `embed` at −1: the last token is the same. So `embed -> q 1.0`, `-> mlp_in 1` and `-> logits` are
  0 at −1, and at −2 nothing reads these receivers any more.
- into `mlp_in 0`, and out of `mlp 0`: neuron 0.0 writes to the mean, which every norm drops.
- `head 0.0 -> k 1.g0` at −1: the key there is x^ = 0 under any scale.
- in layer 1, whatever changes at −2 behind the keys and values.

Through the norm alone: `embed -> v 1.g0` and `head 0.0 -> v 1.g0` change neither t; they change the
scale that it is read with, as `head 0.0 -> k 1.g0` changes that of x.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from mechnum.tasks import pairs_from_tokens
from tests.patching.answers import Answers, ByPosition
from tests.patching.native import wrapped

EPS = 1e-5
A, B, EQUALS = 0, 1, 2
CLEAN, CORRUPT = [A, EQUALS], [B, EQUALS]
_FEATURES = ("x", "t", "h", "y")

CONFIG = NativeConfig(
    n_layers=2,
    n_heads=1,
    d_model=8,
    d_head=1,
    d_mlp=1,
    n_ctx=2,
    d_vocab=3,
    d_vocab_out=3,
    normalization_type="LN",
)


def micro_norm(dtype: torch.dtype = torch.float64) -> Any:
    """The wrapped net."""
    return wrapped(CONFIG, _tensors(), "micro with LayerNorms", dtype)


def micro_norm_pairs() -> Any:
    """The one pair."""
    return pairs_from_tokens([CLEAN], [CORRUPT], [A], [B])


def _written(mean: float = 0, **features: float) -> np.ndarray:
    """A vector of the residual stream that holds these features."""
    vector = np.full(8, float(mean))
    for name, amount in features.items():
        first = 2 * _FEATURES.index(name)
        vector[first] += amount
        vector[first + 1] -= amount
    return vector


def _read(**features: float) -> np.ndarray:
    """Weights whose product with a vector is the sum of its features with these coefficients."""
    return _written(**features) / 2


def _tensors() -> dict[str, torch.Tensor]:
    one, none = np.ones(8), np.zeros(8)

    def layer(number: int, q: Any, k: Any, v: Any, o: Any, ln1_w: Any, ln2_b: Any, i: Any, w: Any):
        named = {
            "ln1.w": ln1_w,
            "ln1.b": none,
            "attn.W_Q": q.reshape(1, 8, 1),
            "attn.W_K": k.reshape(1, 8, 1),
            "attn.W_V": v.reshape(1, 8, 1),
            "attn.W_O": o.reshape(1, 1, 8),
            "ln2.w": one,
            "ln2.b": ln2_b,
            "mlp.W_in": i.reshape(8, 1),
            "mlp.W_out": w.reshape(1, 8),
        }
        return {f"blocks.{number}.{name}": value for name, value in named.items()}

    average = {"q": none, "k": none, "v": _read(x=1), "o": _written(h=2)}
    gather = {"q": _read(h=1), "k": _read(x=1), "v": _read(t=1), "o": _written(y=1)}
    arrays = {
        "embed.W_E": np.stack(
            [_written(mean=3, x=1, t=1), _written(x=-2, t=1), _written(mean=1, t=2)]
        ),
        "pos_embed.W_pos": np.zeros((2, 8)),
        **layer(0, **average, ln1_w=one, ln2_b=none, i=_read(h=1), w=_written(mean=1)),
        **layer(
            1, **gather, ln1_w=2 * one, ln2_b=_written(y=0.5), i=_read(y=1, h=-1), w=_written(t=-1)
        ),
        "ln_final.w": 3 * one,
        "ln_final.b": _written(y=1),
        "unembed.W_U": np.stack([_read(h=1, y=1), _read(y=-1, t=1), _read(x=1)], axis=1),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def g(S: float) -> float:
    return 1 / sqrt(S / 4 + EPS)


def y_of(q: float, k: float, v_first: float, v_last: float) -> float:
    w = 1 / (1 + exp(-q * k))
    return w * v_first + (1 - w) * v_last


def r_of(h: float, y: float) -> float:
    return max(0.0, (y - h) * g(4 + h**2 + y**2) + 1 / 2)


def metric(t: float, h: float, y: float) -> float:
    return 3 * g(t**2 + h**2 + y**2) * (h + 2 * y - t) + 2


# The clean run.
CH2, CH1 = 2 * g(2), g(2)
CQ, CK = 2 * CH1 * g(4 + CH1**2), 2 * g(2 + CH2**2)
CV2, CV1 = 2 * g(2 + CH2**2), 4 * g(4 + CH1**2)
CY = y_of(CQ, CK, CV2, CV1)
CR = r_of(CH1, CY)
# The corrupt run.
H2, H1 = -4 * g(5), -2 * g(5)
Q, K = 2 * H1 * g(4 + H1**2), -4 * g(5 + H2**2)
V2, V1 = 2 * g(5 + H2**2), 4 * g(4 + H1**2)
Y = y_of(Q, K, V2, V1)
R = r_of(H1, Y)
BASE = metric(2 - R, H1, Y)
# The corrupt run's last scale.
G = g((2 - R) ** 2 + H1**2 + Y**2)


def _after(y: float) -> float:
    """Effect of another y, which neuron 1.0 and the logits read."""
    return metric(2 - r_of(H1, y), H1, y) - BASE


def _after_h(h1: float, k: float, v_first: float) -> float:
    """Effect of another h(−1), which q, v(−1), neuron 1.0 and the logits read."""
    y = y_of(2 * h1 * g(4 + h1**2), k, v_first, 4 * g(4 + h1**2))
    return metric(2 - r_of(h1, y), h1, y) - BASE


# Head 0.0's clean write under the corrupt token's x, as the keys and values at −2 read it.
_K_OF_CH2, _V_OF_CH2 = -4 * g(5 + CH2**2), 2 * g(5 + CH2**2)
# The clean token under head 0.0's corrupt write.
_K_OF_A, _V_OF_A = 2 * g(2 + H2**2), 2 * g(2 + H2**2)
_NONE: ByPosition = (0, 0, 0)


def _first(effect: float) -> ByPosition:
    """Of a change at −2 only."""
    return (effect, 0, effect)


def _last(effect: float) -> ByPosition:
    """Of a change that matters at −1 only."""
    return (0, effect, effect)


_EDGES: dict[str, ByPosition] = {
    "embed -> q 0.0": _NONE,
    "embed -> k 0.g0": _NONE,
    # h becomes clean at both positions, x stays.
    "embed -> v 0.g0": _first(_after_h(CH1, _K_OF_CH2, _V_OF_CH2)),
    "embed -> mlp_in 0": _NONE,
    "embed -> q 1.0": _NONE,
    "embed -> k 1.g0": _first(_after(y_of(Q, _K_OF_A, V2, V1))),
    "embed -> v 1.g0": _first(_after(y_of(Q, K, _V_OF_A, V1))),
    "embed -> mlp_in 1": _NONE,
    "embed -> logits": _NONE,
    "head 0.0 -> mlp_in 0": _NONE,
    "head 0.0 -> q 1.0": _last(_after(y_of(CQ, K, V2, V1))),
    "head 0.0 -> k 1.g0": _first(_after(y_of(Q, _K_OF_CH2, V2, V1))),
    "head 0.0 -> v 1.g0": (
        _after(y_of(Q, K, _V_OF_CH2, V1)),
        _after(y_of(Q, K, V2, CV1)),
        _after(y_of(Q, K, _V_OF_CH2, CV1)),
    ),
    "head 0.0 -> mlp_in 1": _last(metric(2 - r_of(CH1, Y), H1, Y) - BASE),
    "head 0.0 -> logits": _last(metric(2 - R, CH1, Y) - BASE),
    "mlp 0 -> q 1.0": _NONE,
    "mlp 0 -> k 1.g0": _NONE,
    "mlp 0 -> v 1.g0": _NONE,
    "mlp 0 -> mlp_in 1": _NONE,
    "mlp 0 -> logits": _NONE,
    "head 1.0 -> mlp_in 1": _last(metric(2 - r_of(H1, CY), H1, Y) - BASE),
    "head 1.0 -> logits": _last(metric(2 - R, H1, CY) - BASE),
    "mlp 1 -> logits": _last(metric(2 - CR, H1, Y) - BASE),
}

ANSWERS = Answers(
    clean_metric=metric(2 - CR, CH1, CY),
    corrupt_metric=BASE,
    totals={
        # The prompts differ at −2 only, so this makes the whole run clean.
        "embed": _first(metric(2 - CR, CH1, CY) - BASE),
        "head 0.0": (
            _after(y_of(Q, _K_OF_CH2, _V_OF_CH2, V1)),
            _after_h(CH1, K, V2),
            _after_h(CH1, _K_OF_CH2, _V_OF_CH2),
        ),
        "mlp 0": _NONE,
        "head 1.0": _last(_after(CY)),
        "mlp 1": _last(metric(2 - CR, H1, Y) - BASE),
        "q 1.0": _last(_after(y_of(CQ, K, V2, V1))),
        "k 1.g0": _first(_after(y_of(Q, CK, V2, V1))),
        "v 1.g0": (
            _after(y_of(Q, K, CV2, V1)),
            _after(y_of(Q, K, V2, CV1)),
            _after(y_of(Q, K, CV2, CV1)),
        ),
    },
    directs={
        sender: _EDGES[f"{sender} -> logits"]
        for sender in ("embed", "head 0.0", "mlp 0", "head 1.0", "mlp 1")
    },
    # With the scale G kept, the metric is linear in what is written.
    frozen_directs={
        "embed": _NONE,
        "head 0.0": _last(3 * G * (CH1 - H1)),
        "mlp 0": _NONE,
        "head 1.0": _last(3 * G * 2 * (CY - Y)),
        "mlp 1": _last(3 * G * (CR - R)),
    },
    edges=_EDGES,
)
