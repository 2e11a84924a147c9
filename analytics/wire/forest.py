"""Orders nodes that name their parents as trees, whatever they name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Placed(Generic[Key]):
    """A node's place: its index, its depth, and its parent if that is shown above it."""

    index: int
    depth: int
    parent: Key | None


def in_tree_order(nodes: Sequence[tuple[Key, Key | None, int]]) -> list[Placed[Key]]:
    """Returns the places of nodes, which are (key, key of the parent, start), depth first and by start.

    A node whose parent is missing is a root, and so is the earliest node of a cycle. If several nodes have the same
    key, the first one is the parent.
    """
    first = {key: index for index, (key, _, _) in reversed(list(enumerate(nodes)))}
    children: dict[int, list[int]] = {}
    roots: list[int] = []
    by_start = sorted(range(len(nodes)), key=lambda index: (nodes[index][2], index))
    for index in by_start:
        parent = nodes[index][1]
        above = first.get(parent) if parent is not None else None
        if above is None or above == index:
            roots.append(index)
        else:
            children.setdefault(above, []).append(index)
    placed: set[int] = set()
    found: list[Placed[Key]] = []
    # Nodes in a circle, or below one, have no root: after the roots each becomes one, unless it is placed by then.
    for root in [*roots, *by_start]:
        found += _walk(root, nodes, children, placed)
    return found


def _walk(
    root: int, nodes: Sequence[tuple[Key, Key | None, int]], children: dict[int, list[int]], placed: set[int]
) -> Iterator[Placed[Key]]:
    waiting: list[tuple[int, int, Key | None]] = [(root, 0, None)]
    while waiting:
        index, depth, parent = waiting.pop()
        if index in placed:
            continue
        placed.add(index)
        yield Placed(index, depth, parent)
        waiting.extend((child, depth + 1, nodes[index][0]) for child in reversed(children.get(index, ())))
