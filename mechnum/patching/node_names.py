"""Reading nodes, sets and lists of them from text, and from TransformerLens' hook names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, TypeAlias

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.nodes import (
    GROUPED,
    KINDS,
    Node,
    NodeKind,
    Target,
    all_nodes,
    example,
    n_parts,
)

# Nodes as users name them: a table or list in words, or nodes, sets and their names.
NodeNames: TypeAlias = str | Sequence[Node | str | Set[Node] | Set[str]]

# What TransformerLens calls the state of a node, in HookedTransformer and in bridges.
_HOOKS: dict[str, NodeKind] = {
    "hook_resid_pre": "resid_pre",
    "hook_in": "resid_pre",
    "hook_resid_mid": "resid_mid",
    "hook_resid_post": "resid_post",
    "hook_out": "resid_post",
    "hook_attn_out": "attn",
    "attn.hook_out": "attn",
    "attn.hook_z": "head",
    "attn.hook_result": "head",
    "attn.hook_q": "q",
    "attn.hook_rot_q": "q",
    "attn.hook_q_input": "q",
    "hook_q_input": "q",
    "attn.hook_k": "k",
    "attn.hook_rot_k": "k",
    "attn.hook_k_input": "k",
    "hook_k_input": "k",
    "attn.hook_v": "v",
    "attn.hook_v_input": "v",
    "hook_v_input": "v",
    "attn.hook_pattern": "pattern",
    "hook_mlp_in": "mlp_in",
    "mlp.hook_in": "mlp_in",
    "hook_mlp_out": "mlp",
    "mlp.hook_out": "mlp",
    "mlp.hook_pre": "neuron_in",
    "mlp.hook_post": "neuron",
}
_OTHER_HOOKS: dict[str, NodeKind] = {
    "hook_embed": "embed",
    "embed.hook_out": "embed",
    "unembed.hook_out": "logits",
}
_PLURALS: dict[str, NodeKind] = {
    **{f"{kind}s": kind for kind in ("head", "mlp", "neuron", "pattern")},
    "embedding": "embed",
}
_NUMBER = r"(?:\d+(?:-\d+)?|\*)"
_NODE = re.compile(
    rf"(?P<kind>[a-z_]+)(?:\s+(?P<layer>{_NUMBER})(?:\.(?P<group>g)?(?P<index>{_NUMBER}))?)?"
)
_HOOK = re.compile(
    r"(?:blocks\.(?P<layer>\d+)\.)?(?P<hook>[a-z_.]*hook_\w+)(?:\[(?P<index>\d+)\])?"
)


def node(
    name: str,
    layer: int | None = None,
    head: int | None = None,
    neuron: int | None = None,
    group: int | None = None,
) -> Node:
    """A node from a kind or a hook name: `node("blocks.5.attn.hook_z", head=3)`.

    Args:
        name: `"head 13.4"`, `"blocks.10.hook_resid_post"`, or a kind alone with the rest as
            arguments: `node("neuron", layer=20, neuron=7741)`.
        head: query head; `group` is the key-value group of keys and values.

    Raises:
        MechnumError: on names that are not known, a part that the kind does not have, and one that
            it lacks.
    """
    kind, named_layer, named_index = _read(name)
    layers = {value for value in (layer, named_layer) if value is not None}
    given = {"head": head, "neuron": neuron, "group": group}
    parts = {what: value for what, value in given.items() if value is not None}
    for what in parts:
        fits = {
            "head": kind in ("head", "q", "pattern"),
            "neuron": kind in ("neuron", "neuron_in"),
            "group": kind in GROUPED,
        }
        if not fits[what]:
            hint = "it has key-value groups, use group=" if kind in GROUPED else "leave it out"
            raise MechnumError(f"{kind} has no {what}, so none of {parts[what]}: {hint}")
    indices = {*parts.values(), *([] if named_index is None else [named_index])}
    if len(layers) > 1 or len(indices) > 1:
        raise MechnumError(f"{name!r} and the arguments name different nodes: say it once")
    return Node(kind, next(iter(layers), None), next(iter(indices), None))


def parse_node(text: str) -> Node:
    """One node: `head 13.4`, `mlp 19`, `neuron 20.7741`, `v 5.g1`, `embed`, or a hook name.

    A hook of heads or neurons says which in brackets: `blocks.5.attn.hook_z[3]`.

    Raises:
        MechnumError: on text that names no node.
    """
    return Node(*_read(text))


def parse_target(text: str) -> Target:
    """One node, or a set that is patched together: `head 9.6 + head 9.9`.

    Raises:
        MechnumError: on text that names no node.
    """
    nodes = [parse_node(part) for part in text.split("+")]
    return nodes[0] if len(nodes) == 1 else frozenset(nodes)


def as_targets(nodes: Iterable[Any]) -> list[Target]:
    """Nodes and sets of them, any of them as text.

    Raises:
        MechnumError: on what is neither.
    """
    try:
        return [_as_target(one) for one in nodes]
    except TypeError:
        raise MechnumError(
            f"{nodes!r} names no nodes: give a text such as 'head 9.6, mlp 10', or a list of nodes"
        ) from None


def _as_target(one: Any) -> Target:
    if isinstance(one, Node):
        return one
    if isinstance(one, str):
        return parse_target(one)
    if not isinstance(one, Set):
        raise MechnumError(
            f"{one!r} is no node: write it as 'head 13.4', and a set of nodes as {{'mlp 1', ...}}"
        )
    nodes = [parse_node(part) if isinstance(part, str) else part for part in one]
    if not all(isinstance(node, Node) for node in nodes):
        raise MechnumError(f"{one!r} holds something that is no node: name each as 'head 13.4'")
    return frozenset(nodes)


def parse_targets(text: str, spec: ModelSpec) -> list[Target]:
    """A list with commas: `head 9-13.*, mlp 19, head 9.6 + head 9.9, neurons, q`.

    `*` stands for every layer or part, `19-22` for a range, and a kind alone for all its nodes.

    Raises:
        MechnumError: on text that names no node, and on nodes that the model does not have.
    """
    found: dict[Target, None] = {}
    for part in text.split(","):
        if "+" in part and "*" in part:
            raise MechnumError(
                f"{part.strip()!r} has '*' in a set: name each node of a set, as in "
                "'head 9.6 + head 9.9'"
            )
        if "+" in part or "hook_" in part:
            target = parse_target(part)
            for one in (target,) if isinstance(target, Node) else target:
                one.check(spec)
            found[target] = None
        else:
            found.update(dict.fromkeys(_expand(part.strip(), spec)))
    return list(found)


def _expand(text: str, spec: ModelSpec) -> Iterator[Node]:
    match = _NODE.fullmatch(text)
    if match is None:
        raise _no_node(text)
    kind = _kind(match["kind"], text)
    if match["layer"] is None:
        yield from all_nodes(kind, spec)
        return
    layers = _numbers(match["layer"], spec.n_layers)
    parts: range | list[None] = [None]
    if match["index"] is not None:
        _check_group(kind, match["group"], text)
        parts = _numbers(match["index"], n_parts(kind, spec))
    for layer in layers:
        for part in parts:
            found = Node(kind, layer, part)
            found.check(spec)
            yield found


def _numbers(text: str, count: int) -> range:
    """A range within the model, or just outside it for the check of the nodes to refuse."""
    if text == "*":
        return range(count)
    first, _, last = text.partition("-")
    low, high = int(first), int(last or first)
    if high < low:
        raise MechnumError(f"range {text} is empty: write the smaller number first")
    return range(low, min(high, max(low, count)) + 1)


def _read(text: str) -> tuple[NodeKind, int | None, int | None]:
    """Kind, layer and index of a name."""
    if not isinstance(text, str):
        raise MechnumError(f"{text!r} is no name of a node: write it as 'head 13.4'")
    name = text.strip()
    if (hook := _HOOK.fullmatch(name)) is not None:
        table = _OTHER_HOOKS if hook["layer"] is None else _HOOKS
        if hook["hook"] not in table:
            raise MechnumError(f"hook {name!r} is none of a node's: use one of {', '.join(table)}")
        return table[hook["hook"]], _integer(hook["layer"]), _integer(hook["index"])
    match = _NODE.fullmatch(name)
    if match is None or any("*" in (part or "") or "-" in (part or "") for part in match.groups()):
        raise _no_node(name)
    kind = _kind(match["kind"], name)
    if match["index"] is not None:
        _check_group(kind, match["group"], name)
    return kind, _integer(match["layer"]), _integer(match["index"])


def _kind(name: str, text: str) -> NodeKind:
    kind = _PLURALS.get(name, name)
    if kind not in KINDS:
        raise _no_node(text)
    return kind  # type: ignore[return-value]  # a member of KINDS


def _check_group(kind: NodeKind, group: str | None, text: str) -> None:
    if (kind in GROUPED) != (group is not None):
        why = "counts key-value groups" if kind in GROUPED else "has no groups"
        raise MechnumError(f"{text!r}: {kind} {why}: write it as {example(kind)!r}")


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)


def _no_node(text: str) -> MechnumError:
    return MechnumError(
        f"{text!r} names no node: write it as 'head 13.4', 'mlp 19', 'neuron 20.7741', 'v 5.g1', "
        "'resid_post 10', 'embed' or 'logits'"
    )
