"""Which senders and receivers path patching is asked for."""

from __future__ import annotations

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.edges import component_receivers, component_senders, named
from mechnum.patching.node_names import NodeNames, as_targets, parse_targets
from mechnum.patching.nodes import RECEIVING, Node, Target, all_nodes, check_all, members
from mechnum.patching.selection import TABLES


def senders_named(senders: NodeNames, spec: ModelSpec) -> list[Target]:
    """The senders of "heads" and the other tables, of "components", of a list in words or of nodes.

    Raises:
        MechnumError: on names that are not known, and on nodes that do not exist or write nothing.
    """
    if senders == "components":
        return list(component_senders(spec))
    if senders == "residual":
        return [Node("embed"), *all_nodes("resid_post", spec)]
    if isinstance(senders, str) and senders in TABLES:
        found: list[Target] = list(all_nodes(TABLES[senders], spec))
    else:
        found = _listed(senders, spec)
    for target in found:
        for node in members(target):
            if not node.sends:
                raise MechnumError(
                    f"{node} writes nothing: a path begins at a head, an MLP, a neuron, a "
                    "key-value group, the embedding or a residual state"
                )
    check_all(found, spec)
    return found


def receivers_named(receivers: NodeNames, spec: ModelSpec) -> list[Target]:
    """The receivers of a kind, of "components", of a list in words or of nodes.

    Raises:
        MechnumError: on names that are not known, and on nodes that do not exist or have no input
            of their own.
    """
    if receivers == "components":
        return list(component_receivers(spec))
    found = _listed(receivers, spec)
    for target in found:
        for node in members(target):
            if not node.receives:
                raise MechnumError(
                    f"{node} has no input of its own: a path ends at one of "
                    f"{', '.join(sorted(RECEIVING))}"
                )
    check_all(found, spec)
    return found


def _listed(targets: NodeNames, spec: ModelSpec) -> list[Target]:
    found = parse_targets(targets, spec) if isinstance(targets, str) else as_targets(targets)
    if not found or not all(members(target) for target in found):
        raise MechnumError("no nodes were named: name at least one, such as 'head 9.6'")
    named(found)
    return found
