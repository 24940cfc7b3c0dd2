"""The patching engine beside TransformerLens' sweeps and loops, in one run.

Run `python benchmarks/patching.py [--threads N] [--sample N]` after `mechnum fetch smollm2`. Both
sides get the same model, pairs, metric and threads. Of TransformerLens' sweeps `--sample` forwards
are run and their median is multiplied; ours run whole, the median of three. Quote the ratios: the
seconds are this machine's.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import mechnum as mn
from mechnum.patching.direct import direct_effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.local import local_difference, states_to_keep
from mechnum.patching.measure import Scorer
from mechnum.patching.path.paths import path_effects
from mechnum.patching.sources import source, source_batches
from mechnum.tasks import pairs_from_tokens

HEADER = "6+1=7\n1+1=2\n"  # with a+b= of two digits each: 18 tokens of SmolLM2
MIDDLE = 15


@dataclass
class Row:
    """One line of the table."""

    work: str
    ours: float
    theirs: float
    difference: float

    def print(self) -> None:
        ratio = self.theirs / self.ours
        print(
            f"{self.work:52} {ratio:7.1f}x {self.ours:8.2f} s {self.theirs:9.2f} s"
            f"   largest difference {self.difference:.1e}"
        )


def seconds(action: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """Median time and the last result."""
    times = []
    result = None
    for _ in range(runs):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def peak_mib() -> float:
    """Largest size of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def addition_pairs(model: Any, n: int, seed: int = 0) -> Any:
    """Sums of two digits after two solved ones."""
    generator = np.random.default_rng(seed)
    sides: dict[str, list[Any]] = {"clean": [], "corrupt": [], "answer": [], "other": []}
    while len(sides["clean"]) < n:
        a, b, c, d = generator.integers(10, 45, 4)
        if str(a + b)[0] == str(c + d)[0]:
            continue
        for tokens, answer, x, y in (("clean", "answer", a, b), ("corrupt", "other", c, d)):
            sides[tokens].append(model.tokenizer.encode(f"{HEADER}{x}+{y}="))
            sides[answer].append(model.tokenizer.encode(str(x + y)[0])[0])
    return pairs_from_tokens(sides["clean"], sides["corrupt"], sides["answer"], sides["other"])


class Hooked:
    """The same patches by TransformerLens' hooks, one forward for each."""

    def __init__(self, model: Any, pairs: Any) -> None:
        (group,) = pairs.groups
        self.tl = model.tl
        self.base, self.source = group.corrupt.tokens, group.clean.tokens
        self.answers, self.others = group.clean.answers, group.corrupt.answers
        with torch.no_grad():
            _, self.cache = self.tl.run_with_cache(self.source)
            logits, self.base_cache = self.tl.run_with_cache(self.base)
        self.before = self.metric(logits)

    def metric(self, logits: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(len(logits))
        return logits[rows, -1, self.answers] - logits[rows, -1, self.others]

    def effect(self, name: str, write: Callable[[torch.Tensor], None]) -> torch.Tensor:
        """Effect of editing one hook's value, [pair]."""

        def edit(value: torch.Tensor, hook: Any) -> torch.Tensor:
            value = value.clone()
            write(value)
            return value

        with torch.no_grad():
            logits = self.tl.run_with_hooks(self.base, fwd_hooks=[(name, edit)])
        return self.metric(logits) - self.before

    def part(self, name: str, index: int, position: int = -1) -> torch.Tensor:
        """A head's or a neuron's value from the clean run, at one position."""
        source = self.cache[name]

        def write(value: torch.Tensor) -> None:
            value[:, position, index] = source[:, position, index]

        return self.effect(name, write)

    def residual(self, layer: int, position: int) -> torch.Tensor:
        """The residual stream before a layer, at one position."""
        name = f"blocks.{layer}.hook_resid_pre"

        def write(value: torch.Tensor) -> None:
            value[:, position] = self.cache[name][:, position]

        return self.effect(name, write)

    def direct(self, layer: int, neuron: int) -> torch.Tensor:
        """A neuron's write added to the last residual."""
        name = f"blocks.{layer}.mlp.hook_post"
        change = (self.cache[name] - self.base_cache[name])[:, -1, neuron]
        direction = self.tl.blocks[layer].mlp.W_out[neuron]
        last = f"blocks.{self.tl.cfg.n_layers - 1}.hook_resid_post"

        def write(value: torch.Tensor) -> None:
            value[:, -1] += change[:, None] * direction

        return self.effect(last, write)


def sampled(
    work: str, cells: list[tuple[int, int]], slow: Callable[[int, int], torch.Tensor], sample: int
) -> tuple[float, list[tuple[int, int]], list[np.ndarray]]:
    """Time of a sweep over all cells from some, and the values of these."""
    generator = np.random.default_rng(0)
    chosen = [cells[i] for i in generator.permutation(len(cells))[:sample]]
    times, values = [], []
    for cell in chosen:
        start = time.perf_counter()
        values.append(slow(*cell).numpy())
        times.append(time.perf_counter() - start)
    return statistics.median(times) * len(cells), chosen, values


def compare(
    work: str,
    ours: Callable[[], Any],
    read: Callable[[Any, int, int], np.ndarray],
    cells: list[tuple[int, int]],
    slow: Callable[[int, int], torch.Tensor],
    sample: int,
) -> Row:
    own, found = seconds(ours)
    theirs, chosen, values = sampled(work, cells, slow, sample)
    differences = [
        np.abs(read(found, *cell) - value).max() for cell, value in zip(chosen, values, strict=True)
    ]
    return Row(work, own, theirs, max(differences))


def smollm2(sample: int) -> None:
    model = mn.load("smollm2")
    pairs = addition_pairs(model, 8)
    hooked = Hooked(model, pairs)
    n_layers, n_heads = model.spec.n_layers, model.spec.n_heads
    compare(
        f"total effect of all {n_layers * n_heads} heads, last token",
        lambda: mn.effects(model, pairs, "heads"),
        lambda found, layer, head: found["total"].values[:, layer, head],
        [(layer, head) for layer in range(n_layers) for head in range(n_heads)],
        lambda layer, head: hooked.part(f"blocks.{layer}.attn.hook_z", head),
        sample,
    ).print()
    neurons(model, pairs, hooked, sample)
    compare(
        f"total effect of the {model.spec.d_mlp} neurons of layer {MIDDLE}",
        lambda: mn.effects(model, pairs, f"neuron {MIDDLE}.*", estimands="total"),
        lambda found, _, neuron: found["total"].values[:, neuron],
        [(MIDDLE, neuron) for neuron in range(model.spec.d_mlp)],
        lambda layer, neuron: hooked.part(f"blocks.{layer}.mlp.hook_post", neuron),
        sample,
    ).print()
    length = pairs.groups[0].clean.tokens.shape[1]
    compare(
        f"residual × position sweep, {n_layers} × {length}",
        lambda: mn.effects(model, pairs, "residual", "each", estimands="total"),
        lambda found, layer, place: found["total"].values[:, place, layer],
        [(layer, place) for layer in range(n_layers) for place in range(length)],
        hooked.residual,
        sample,
    ).print()


def neurons(model: Any, pairs: Any, hooked: Hooked, sample: int) -> None:
    """All direct effects in less time than one forward of the batch."""
    own, found = seconds(lambda: mn.effects(model, pairs, "neurons", estimands="direct"), runs=5)
    with torch.no_grad():
        forward, _ = seconds(lambda: hooked.tl(hooked.base), runs=5)
    generator = np.random.default_rng(0)
    differences = []
    for _ in range(sample):
        layer, neuron = (int(generator.integers(n)) for n in (model.spec.n_layers, 1536))
        expected = hooked.direct(layer, neuron).numpy()
        differences.append(np.abs(found["direct"].values[:, layer, neuron] - expected).max())
    n_neurons = model.spec.n_layers * model.spec.d_mlp
    work = f"direct effect of all {n_neurons:,} neurons"
    given = closed_form(model, pairs)
    Row(f"{work}, against one forward", given, forward, max(differences)).print()
    Row("the same with both prompts' runs", own, forward, max(differences)).print()


def closed_form(model: Any, pairs: Any) -> float:
    """Time of the direct effects of all neurons, once both prompts of the pairs were run."""
    plain = Intervention("end", "logit_diff", "denoise", "other", "position", seed=0)
    prepared = source(model, pairs, plain, *states_to_keep(["neuron"]))
    (batch,) = source_batches(model, pairs, prepared)
    place, _ = prepared.place(batch)
    scorer = Scorer.of(place, batch, "logit_diff")

    def all_layers() -> None:
        for layer in range(model.spec.n_layers):
            own = local_difference(place, "neuron", layer)
            direct_effects(model.decoder, scorer.last, own, scorer.metric)

    with torch.no_grad():
        return seconds(all_layers, runs=5)[0]


def edges() -> None:
    """Head → q, against TransformerLens' own path patching."""
    from transformer_lens import patching
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    generator = torch.Generator().manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=512,
        hidden_size=256,
        num_hidden_layers=8,
        num_attention_heads=8,
        intermediate_size=1024,
        max_position_embeddings=64,
    )
    net = GPTNeoXForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.06 * torch.randn(parameter.shape, generator=generator))
    model = mn.wrap(net)
    bridge: TransformerBridge = model.tl
    tokens = torch.randint(0, 512, (2, 8, 18), generator=generator)
    answers = torch.arange(8), torch.arange(8, 16)
    pairs = pairs_from_tokens(tokens[0], tokens[1], *answers)

    def metric(logits: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(8)
        return (logits[rows, -1, answers[0]] - logits[rows, -1, answers[1]]).mean()

    own, found = seconds(lambda: path_effects(model, pairs, "heads", "q"))
    with torch.no_grad():
        _, clean = bridge.run_with_cache(tokens[0])
        logits, corrupt = bridge.run_with_cache(tokens[1])
        theirs, scores = seconds(
            lambda: patching.get_act_patch_direct_path_all_sources(
                bridge, tokens[1], clean, corrupt, metric, component="q", verbose=False
            ),
            runs=1,
        )
    effect = found["effect"].mean("pair").values.reshape(8, 8, 8, 8)
    difference = np.nanmax(np.abs(effect - (scores - metric(logits)).numpy()))
    Row("head → q edges, NeoX of 8 layers and 8 heads", own, theirs, float(difference)).print()


def memory() -> None:
    """How far the process grows beyond the loaded model, for 8 and for 64 pairs."""
    model = mn.load("smollm2")
    for n in (8, 64):
        pairs = addition_pairs(model, n)
        for nodes, position, estimands in (
            ("heads", "end", ("total", "direct")),
            ("neurons", "end", ("direct",)),
            ("neuron 28.*", "end", ("total",)),
            ("residual", "each", ("total",)),
        ):
            before = peak_mib()
            mn.effects(model, pairs, nodes, position, estimands=estimands)
            print(f"{n:3} pairs, {nodes:12} peak grew by {peak_mib() - before:6.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sample", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    memory()
    print(f"\n{'work':52} {'ratio':>8} {'ours':>10} {'TransformerLens':>17}")
    smollm2(options.sample)
    edges()


if __name__ == "__main__":
    main()
