"""Circles in what needs what: steps of an ensemble, ensembles in ensembles, models that call each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def on_circles(needs: Mapping[_Node, Collection[_Node]]) -> list[_Node]:
    """The nodes that need themselves by way of others, and those between two such circles, in their order."""
    left = _without_ends(_without_ends(needs))
    return [node for node in needs if node in left]


def _without_ends(needs: Mapping[_Node, Collection[_Node]]) -> dict[_Node, set[_Node]]:
    """The needs the other way round, less the nodes that need nothing, one after the other."""
    needed_by: dict[_Node, set[_Node]] = {node: set() for node in needs}
    for node, sources in needs.items():
        for source in sources:
            if source in needed_by:
                needed_by[source].add(node)
    open_needs = Counter(node for nodes in needed_by.values() for node in nodes)
    free = [node for node in needs if not open_needs[node]]
    gone: set[_Node] = set()
    while free:
        node = free.pop()
        gone.add(node)
        for other in needed_by[node]:
            open_needs[other] -= 1
            if not open_needs[other]:
                free.append(other)
    return {node: nodes - gone for node, nodes in needed_by.items() if node not in gone}


def reachable(needs: Mapping[_Node, Collection[_Node]], start: _Node) -> set[_Node]:
    """`start`, and all that it needs, and what those need."""
    found: set[_Node] = set()
    left = [start]
    while left:
        if (node := left.pop()) not in found:
            found.add(node)
            left.extend(needs.get(node, ()))
    return found
