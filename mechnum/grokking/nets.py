"""Nets as functions of the embeddings of a and of b, which is all that clock or pizza needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.grokking.logits import Logits, checked_logits
from mechnum.grokking.modulus import check_prime
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.tasks.arithmetic import ModularAddition, parse
from mechnum.tasks.prompts import Prompts


@runtime_checkable
class EmbeddingNet(Protocol):
    """A net that adds modulo p = the number of rows of its tables."""

    @property
    def embeddings_a(self) -> Float[Tensor, "p d"]:
        """What the net reads for each number as a."""
        ...

    @property
    def embeddings_b(self) -> Float[Tensor, "p d"]:
        """What the net reads for each number as b; the same table where numbers share tokens."""
        ...

    @property
    def row_bytes(self) -> int:
        """About what one pair of embeddings takes in memory on its way to the logits."""
        ...

    def logits(
        self, a: Float[Tensor, "row d"], b: Float[Tensor, "row d"]
    ) -> Float[Tensor, "row p"]:
        """Logits of the p classes from embeddings of a and of b, differentiable in both."""
        ...


@dataclass(frozen=True, eq=False)
class FunctionNet:
    """A net given by its tables and a function; made by `net_from_function`."""

    embeddings_a: Float[Tensor, "p d"]
    embeddings_b: Float[Tensor, "p d"]
    function: Callable[[Tensor, Tensor], Tensor]

    @property
    def row_bytes(self) -> int:
        """As of an MLP that is eight times as wide as the embedding."""
        p, d = self.embeddings_a.shape
        return 4 * (8 * d + p)

    def logits(
        self, a: Float[Tensor, "row d"], b: Float[Tensor, "row d"]
    ) -> Float[Tensor, "row p"]:
        """What the function gives.

        Raises:
            MechnumError: where that is not p logits a row.
        """
        found = self.function(a, b)
        wanted = (len(a), len(self.embeddings_a))
        if tuple(found.shape) != wanted:
            raise MechnumError(
                f"the net gives logits of shape {tuple(found.shape)} where {wanted} is wanted: "
                "return those of the p classes at the last position alone"
            )
        return found


def net_from_function(
    function: Callable[[Tensor, Tensor], Tensor],
    embeddings_a: Float[Tensor, "p d"],
    embeddings_b: Float[Tensor, "q d"] | None = None,
) -> FunctionNet:
    """A net from a function of embeddings [row, d], [row, d] → logits [row, p].

    Args:
        embeddings_a: one row for each number of 0 … p − 1.
        embeddings_b: where b has tokens of its own.

    Raises:
        MechnumError: on tables of other shapes, on ones that are not finite, and on a p that is no
            prime of 3 or more.
    """
    b = embeddings_a if embeddings_b is None else embeddings_b
    if not (isinstance(embeddings_a, Tensor) and isinstance(b, Tensor)):
        raise MechnumError("the embeddings are no torch tensors: give torch.as_tensor of them")
    if b.shape != embeddings_a.shape:
        raise MechnumError(
            f"the embeddings of b have shape {tuple(b.shape)} and those of a "
            f"{tuple(embeddings_a.shape)}: give one row for each number in both"
        )
    return FunctionNet(_checked(embeddings_a), _checked(b), function)


@dataclass(frozen=True, eq=False)
class ModelNet:
    """A model as such a net; made by `net_from_model`.

    Attributes:
        task: what it adds by.
        prompt: one prompt of the task; only its a and b are replaced.
        at: the positions of a and b.
        classes: token id of each answer.
    """

    model: Model
    task: ModularAddition
    embeddings_a: Float[Tensor, "p d"]
    embeddings_b: Float[Tensor, "p d"]
    prompt: Int[Tensor, "1 pos"]
    at: tuple[int, int]
    classes: Int[Tensor, " p"]

    @property
    def row_bytes(self) -> int:
        """Of one prompt."""
        length = self.prompt.shape[1]
        return block_bytes(self.model.spec, length, length)

    def logits(
        self, a: Float[Tensor, "row d"], b: Float[Tensor, "row d"]
    ) -> Float[Tensor, "row p"]:
        """Logits after the prompt with these embeddings in the places of a and b."""
        decoder = self.model.decoder
        W_pos = decoder.weights.W_pos
        columns = list(decoder.embed(self.prompt)[0].expand(len(a), -1, -1).unbind(1))
        for place, given in zip(self.at, (a, b), strict=True):
            columns[place] = given if W_pos is None else given + W_pos[place]
        resid = torch.stack(columns, 1).unsqueeze(0)
        for layer in range(decoder.spec.n_layers):
            resid = decoder.block(layer, resid)
        return decoder.logits(resid[0, :, -1], self.classes)


def net_from_model(model: Model, task: ModularAddition | None = None) -> ModelNet:
    """A model that adds modulo a prime p.

    Args:
        task: what the model was trained on, where it does not say so itself.

    Raises:
        MechnumError: on a model without such a task, or that cannot do it, on weights that are not
            finite, and on a p that is no prime of 3 or more.
    """
    task = modular_task(model, task)
    prompts = prompts_of(model, task)
    model.check_current()
    tables = (_of_operand(model, prompts, name, task.p) for name in ("a", "b"))
    a, b = (_checked(table) for table in tables)
    at = (int(prompts.positions["a"][0]), int(prompts.positions["b"][0]))
    prompt = prompts.tokens[:1].to(model.device)
    return ModelNet(model, task, a, b, prompt, at, class_tokens(prompts, task.p).to(model.device))


def as_net(net: Any, task: ModularAddition | None = None) -> EmbeddingNet:
    """A model through `net_from_model`, with this task; a net of embeddings as it is.

    Raises:
        MechnumError: on anything else.
    """
    if isinstance(net, Model):
        return net_from_model(net, task)
    if not isinstance(net, EmbeddingNet):
        raise MechnumError(
            f"a {type(net).__name__} is no net of embeddings: give a model, or what "
            "net_from_function makes of a function"
        )
    return net


def modular_task(model: Model, task: ModularAddition | None) -> ModularAddition:
    """The task given, or the one that the model was trained on; its p is a prime.

    Raises:
        MechnumError: where there is none, where it is another, and on a p that is no prime ≥ 3.
    """
    if task is None:
        own = None if model.default_task is None else parse(model.default_task)
        if not isinstance(own, ModularAddition):
            raise MechnumError(
                f"{model.name} does not say which modulus it adds by: give "
                "task=mn.tasks.modular_addition(p), or --task modular_addition:P"
            )
        task = own
    check_prime(task.p)
    return task


def prompts_of(model: Model, task: ModularAddition) -> Prompts:
    """The prompts of all pairs, b fastest."""
    (prompts,) = task.prompts(model)
    order = torch.argsort(prompts.variables["a"] * task.p + prompts.variables["b"])
    return prompts.select(order)


def class_tokens(prompts: Prompts, p: int) -> Int[Tensor, " p"]:
    """The token that answers with each number."""
    tokens = torch.empty(p, dtype=torch.long)
    tokens[prompts.variables["answer"]] = prompts.answers
    return tokens


def net_logits(
    net: EmbeddingNet,
    a: Float[Tensor, "p d"] | None = None,
    b: Float[Tensor, "p d"] | None = None,
) -> Logits:
    """Logits [a, b, class] of all pairs, in batches that fit the memory budget.

    Args:
        a, b: other tables to read the numbers from.

    Raises:
        MechnumError: on logits that are not finite.
    """
    tables = (net.embeddings_a if a is None else a, net.embeddings_b if b is None else b)
    p, device = len(tables[0]), tables[0].device
    with exact(device):
        parts = []
        for first, second in _rows_of_pairs(p, net.row_bytes, device):
            parts.append(net.logits(tables[0][first], tables[1][second]).double().cpu())
    return checked_logits(torch.cat(parts).reshape(p, p, p))


def _rows_of_pairs(
    p: int, row_bytes: int, device: torch.device
) -> Iterator[tuple[Int[Tensor, " row"], Int[Tensor, " row"]]]:
    for rows in batches(p * p, row_bytes + 8 * p):
        row = torch.arange(p * p, device=device)[rows]
        yield row // p, row % p


def _of_operand(model: Model, prompts: Prompts, name: str, p: int) -> Float[Tensor, "p d"]:
    """The embedding of each number where it is this operand."""
    tokens = torch.empty(p, dtype=torch.long)
    own = prompts.tokens.gather(1, prompts.positions[name][:, None])[:, 0]
    tokens[prompts.variables[name]] = own
    return model.decoder.weights.W_E[tokens.to(model.device)].detach()


def _checked(table: Tensor) -> Tensor:
    if table.ndim != 2 or not table.is_floating_point():
        raise MechnumError(f"embeddings have shape {tuple(table.shape)}: give floats [p, d]")
    check_prime(len(table))
    if not bool(torch.isfinite(table).all()):
        raise MechnumError("the embeddings are not all finite: look for NaN in the weights")
    return table.detach()
