"""A transformer that adds modulo p, constructed weight by weight, so that every edge is known.

The prompt is [a, b, =]; the logit of c at the last position is 1 where c = a + b mod p and 0
elsewhere, exactly and for all p² prompts. There are no norms: a norm would make every write matter
to every reader.

The residual stream holds named features, each in a direction of its own. The directions are the
rows of an orthogonal matrix with entries ±1/4, so that no coordinate shows a feature alone and sums
are still exact. Attention is hard: scores differ by 1024 or more, and exp(−1024) is 0 in floating
point.

| node | reads | writes | at |
|---|---|---|---|
| embed | | n = the number; p0, p1, e = 1 at positions 0, 1, 2 | all |
| head 0.0 | v: n; looks at p0 from e | a | 2 |
| head 0.1 | v: n; looks at p1 from e | b | 2 |
| neuron 0.0 | a + b, only at e | s = a + b | 2 |
| neuron 0.1 | n, only at p1 | copy = b | 1 |
| head 1.0 | q: 2(a + b − p) + 1; looks at p0 where that is positive, else at p1 | carry | 2 |
| head 1.1 | k: 2(s − p) + 1 at e; looks at e where that is positive, else at p0 | carry | 2 |
| head 1.2 | v: copy; looks at p1 from e | moved = b | 2 |
| neuron 1.j | t − (j − 1) for t = a + moved + carry, one for each j < p | the logits | 2 |

The carry is −p where a + b ≥ p, else 0: ⌈p/2⌉ of it comes from head 1.0 and ⌊p/2⌋ from head 1.1. So
t is a + b mod p, and relu(t − c + 1) − 2 relu(t − c) + relu(t − c − 1) is 1 where t = c and 0 at
all other integers: each logit is a second difference of the neurons' ramps.

Everything else distracts:

| node | why it looks like a part | why it is none |
|---|---|---|
| head 0.2 | moves a to the last position, as head 0.0 | nothing that matters reads `junk 0` |
| head 0.3 | q, k and v depend on the numbers | only distractors read `junk 1` |
| head 1.3 | q, k and v read a, s and distractors | only distractors read `junk 3` |
| neuron 0.2 | the same ramp as neuron 0.0 | only distractors read `junk 2` |
| neuron 0.3 | reads a and b, writes to s, which key 1.1 reads | it never fires |
| neuron 0.4 | writes to the carry, which the last neurons read | it always writes the same |
| neurons 0.5 … | read every feature that is there | only distractors read what they write |
| neuron 1.p | reads t as its neighbours do | nothing reads `junk 4` |
| neuron 1.p + 1 | reads t, writes to all logits | it never fires |
| neuron 1.p + 2 | reads the distractors | nothing reads `junk 5` |

The queries and keys of heads 0.0, 0.1 and 1.2, keys and values of 1.0, queries and values of 1.1 do
matter, but they read only the positions, which are the same in all prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import hadamard
from torch import Tensor

from mechnum.models.native import NativeConfig
from mechnum.patching.edges import Edge
from mechnum.patching.nodes import Node
from mechnum.tasks import pairs_from_tokens
from tests.patching.native import wrapped

HARD = 1024
# Shuts a neuron away from its position, and a key away from a query: more than any sum of numbers.
_FAR = 64
_N_JUNK = 6
_D_MODEL = 32
_N_HEADS = 4


@dataclass(frozen=True)
class Constructed:
    """The net, its prompts, and the edges that matter.

    Attributes:
        model: wrapped.
        pairs: every prompt as the clean one, with a corrupt one of another answer.
        edges: the true edges, from embed, heads and neurons to q, k, v, single neurons' inputs and
            logits. An edge is true where changing it alone changes the logits of some pair.
    """

    model: Any
    pairs: Any
    edges: frozenset[Edge]

    def true_edges(self, senders: Iterable[Node], receivers: Iterable[Node]) -> frozenset[Edge]:
        """The true edges between nodes that may be whole MLPs or attention layers.

        Such an edge is true where one of its parts is.
        """
        coarse = {
            (sender, receiver)
            for edge in self.edges
            for sender in (edge.sender, _whole(edge.sender))
            for receiver in (edge.receiver, _whole(edge.receiver))
        }
        ends = list(receivers)
        return frozenset(Edge(s, r) for s in senders for r in ends if (s, r) in coarse)


def constructed(
    p: int = 7, n_pairs: int | None = None, dtype: torch.dtype = torch.float64
) -> Constructed:
    """The net for p from 5 to 13.

    Args:
        n_pairs: the first of the p² prompts in a shuffled order; all of them without it.
    """
    config = NativeConfig(
        n_layers=2,
        n_heads=_N_HEADS,
        d_model=_D_MODEL,
        d_head=1,
        d_mlp=p + 3,
        n_ctx=3,
        d_vocab=p + 1,
        d_vocab_out=p,
    )
    model = wrapped(config, _tensors(p), f"constructed a+b mod {p}", dtype)
    return Constructed(model, constructed_pairs(p, n_pairs), _true_edges(p))


def constructed_pairs(p: int, n_pairs: int | None = None) -> Any:
    """Every prompt once as the clean one; the corrupt ones are drawn with seed 0."""
    prompts = all_prompts(p)
    answers = prompts[:, :2].sum(1) % p
    generator = np.random.default_rng(0)
    clean = generator.permutation(len(prompts))[:n_pairs]
    corrupt = [generator.choice(np.flatnonzero(answers != answers[row])) for row in clean]
    return pairs_from_tokens(prompts[clean], prompts[corrupt], answers[clean], answers[corrupt])


def all_prompts(p: int) -> np.ndarray:
    """Tokens [p², 3]: a, b, and the token p, which stands for `=`."""
    a, b = np.divmod(np.arange(p * p), p)
    return np.stack([a, b, np.full_like(a, p)], axis=1)


def _true_edges(p: int) -> frozenset[Edge]:
    """Reading off the table; `head 0.0 -> mlp_in 1` stands for an edge to each of p neurons."""
    ramps = range(p)
    texts = [
        # The numbers, where they are read: head 0.0 and head 0.1 carry them, neuron 0.1 copies b.
        *("embed -> v 0.g0", "embed -> v 0.g1", "embed -> neuron_in 0.1"),
        # a + b, which neuron 0.0 hands on to a key, and a query reads for itself.
        *("head 0.0 -> neuron_in 0.0", "head 0.1 -> neuron_in 0.0"),
        *("head 0.0 -> q 1.0", "head 0.1 -> q 1.0", "neuron 0.0 -> k 1.g1"),
        # The copy of b, fetched as a value. Head 0.1's b is read by nothing after the carry.
        "neuron 0.1 -> v 1.g2",
        # t, which every ramp reads, and the ramps, each of which some logit reads.
        *(
            f"head {head} -> neuron_in 1.{j}"
            for head in ("0.0", "1.0", "1.1", "1.2")
            for j in ramps
        ),
        *(f"neuron 1.{j} -> logits" for j in ramps),
    ]
    return frozenset(map(Edge.parse, texts))


def _whole(node: Node) -> Node:
    """The component that a neuron or head is a part of."""
    if node.kind == "neuron":
        return Node("mlp", node.layer)
    if node.kind == "neuron_in":
        return Node("mlp_in", node.layer)
    return Node("attn", node.layer) if node.kind == "head" else node


class _Features:
    """Names of directions, as readers and writers of the residual stream."""

    def __init__(self, p: int) -> None:
        junk = [f"junk {i}" for i in range(_N_JUNK)]
        logits = [f"logit {c}" for c in range(p)]
        # Junk stands between the rest, so that the two share coordinates.
        names = ["n", "p0", *junk, "p1", "e", "a", "b", "s", "copy", "moved", "carry", *logits]
        assert len(names) <= _D_MODEL
        basis = np.kron(np.eye(2), hadamard(16) / 4)
        self.directions = dict(zip(names, basis))

    def __call__(self, **amounts: float) -> np.ndarray:
        """Σ amount · direction; `junk_0` and `logit_3` stand for `junk 0` and `logit 3`."""
        return sum(
            (amount * self.directions[name.replace("_", " ")] for name, amount in amounts.items()),
            start=np.zeros(_D_MODEL),
        )


@dataclass
class _Weights:
    """One layer's weights: every head and neuron is a few vectors of the residual stream."""

    d_mlp: int

    def __post_init__(self) -> None:
        wide, narrow = (_N_HEADS, _D_MODEL), (self.d_mlp, _D_MODEL)
        self.q, self.k, self.v, self.o = (np.zeros(wide) for _ in range(4))
        self.b_q = np.zeros(_N_HEADS)
        self.into, self.out, self.b_in = np.zeros(narrow), np.zeros(narrow), np.zeros(self.d_mlp)

    def head(
        self,
        head: int,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        o: np.ndarray,
        b_q: float = 0,
    ) -> None:
        self.q[head], self.k[head], self.v[head], self.o[head] = q, k, v, o
        self.b_q[head] = b_q

    def neuron(self, neuron: int, into: np.ndarray, out: np.ndarray, bias: float = 0) -> None:
        self.into[neuron], self.out[neuron], self.b_in[neuron] = into, out, bias

    def tensors(self, layer: int) -> dict[str, np.ndarray]:
        named = {
            "attn.W_Q": self.q[:, :, None],
            "attn.W_K": self.k[:, :, None],
            "attn.W_V": self.v[:, :, None],
            "attn.W_O": self.o[:, None, :],
            "attn.b_Q": self.b_q[:, None],
            "mlp.W_in": self.into.T,
            "mlp.b_in": self.b_in,
            "mlp.W_out": self.out,
        }
        return {f"blocks.{layer}.{name}": value for name, value in named.items()}


def _tensors(p: int) -> dict[str, Tensor]:
    f = _Features(p)
    first, second = _Weights(p + 3), _Weights(p + 3)
    _first_layer(f, first)
    _second_layer(f, second, p)
    _distractors(f, first, second, p)
    arrays = {
        "embed.W_E": np.stack([*(f(n=number) for number in range(p)), f()]),
        "pos_embed.W_pos": np.stack([f(p0=1), f(p1=1), f(e=1)]),
        **first.tensors(0),
        **second.tensors(1),
        "unembed.W_U": np.stack([f(**{f"logit_{c}": 1}) for c in range(p)], axis=1),
    }
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def _first_layer(f: _Features, layer: _Weights) -> None:
    layer.head(0, q=f(e=HARD), k=f(p0=1), v=f(n=1), o=f(a=1))
    layer.head(1, q=f(e=HARD), k=f(p1=1), v=f(n=1), o=f(b=1))
    layer.neuron(0, into=f(a=1, b=1, e=_FAR), out=f(s=1), bias=-_FAR)
    layer.neuron(1, into=f(n=1, p1=_FAR), out=f(copy=1), bias=-_FAR)


def _second_layer(f: _Features, layer: _Weights, p: int) -> None:
    # 2x + 1 is never 0 for an integer x, so that no two scores are equal.
    threshold = -(2 * p - 1) * HARD
    by_query, by_key = (p + 1) // 2, p // 2
    sums = {"a": 2 * HARD, "b": 2 * HARD}
    layer.head(0, q=f(**sums), k=f(p0=1, p1=-1), v=f(p0=1), o=f(carry=-by_query), b_q=threshold)
    keys = f(s=2 * HARD, e=threshold, p1=-_FAR * HARD)
    layer.head(1, q=f(), k=keys, v=f(e=1), o=f(carry=-by_key), b_q=1)
    layer.head(2, q=f(e=HARD), k=f(p1=1), v=f(copy=1), o=f(moved=1))
    for j in range(p):
        slopes = {j: 1, j - 1: -2, j - 2: 1}
        out = f(**{f"logit_{c}": slope for c, slope in slopes.items() if c >= 0})
        # Neuron 0.4 adds 1 to the carry in all prompts, which the 1 in this bias takes away.
        layer.neuron(j, into=f(a=1, moved=1, carry=1), out=out, bias=-(j - 1) - 1)


def _distractors(f: _Features, first: _Weights, second: _Weights, p: int) -> None:
    first.head(2, q=f(e=HARD), k=f(p0=1), v=f(n=1), o=f(junk_0=1))
    first.head(3, q=f(n=1, e=1), k=f(n=1, p1=1), v=f(n=1, e=2), o=f(junk_1=1, junk_2=-1))
    first.neuron(2, into=f(a=1, b=1, e=_FAR), out=f(junk_2=1), bias=-_FAR)
    first.neuron(3, into=f(a=1, b=1), out=f(s=1), bias=-_FAR)
    first.neuron(4, into=f(e=1), out=f(carry=1))
    generator = np.random.default_rng(1)
    for neuron in range(5, p + 3):
        first.neuron(
            neuron,
            into=f(**_drawn(generator, ("n", "p0", "p1", "e", "a", "b", "junk_0", "junk_1"))),
            out=f(**_drawn(generator, ("junk_2", "junk_3", "junk_4"))),
            bias=int(generator.integers(0, 3)),
        )
    second.head(
        3,
        q=f(a=1, junk_0=1, junk_1=1),
        k=f(s=1, n=1, junk_2=1),
        v=f(s=1, a=1, n=-1, copy=2, junk_1=1),
        o=f(junk_3=1),
    )
    everything = f(**{f"logit_{c}": 1 + c for c in range(p)})
    second.neuron(p, into=f(a=1, moved=1, carry=1), out=f(junk_4=1))
    second.neuron(p + 1, into=f(a=1, moved=1, carry=1), out=everything, bias=-_FAR)
    second.neuron(p + 2, into=f(junk_2=1, junk_3=-1, s=1), out=f(junk_5=1), bias=2)


def _drawn(generator: np.random.Generator, names: Sequence[str]) -> dict[str, int]:
    """Small integers that are not 0."""
    return {name: int(generator.choice([-2, -1, 1, 2])) for name in names}
