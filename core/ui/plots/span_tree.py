"""Makes a tree of spans from what they say of their parents. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.ui.plots.shapes import Span


@dataclass(slots=True)
class Node:
    span: Span
    depth: int
    children: list[Node] = field(default_factory=list)
    has_bad: bool = False
    """A span below this one is of kind "bad"."""


def span_tree(spans: Sequence[Span]) -> list[Node]:
    """Returns the roots by their start, each with its descendants.

    A span whose parent is missing is a root, and so is the first span of a circle of parents.
    """
    ordered = sorted(spans, key=lambda span: (span.start, span.id))
    ids = {span.id for span in ordered}
    children: dict[str, list[Span]] = defaultdict(list)
    for span in ordered:
        if span.parent_id in ids and span.parent_id != span.id:
            children[str(span.parent_id)].append(span)
    placed: set[str] = set()
    roots = [span for span in ordered if span.parent_id not in ids or span.parent_id == span.id]
    trees = [_tree(root, children, placed) for root in roots if root.id not in placed]
    # Spans that no root leads to are in a circle, or below one.
    trees += [_tree(span, children, placed) for span in ordered if span.id not in placed]
    return sorted(trees, key=lambda node: (node.span.start, node.span.id))


def _tree(root: Span, children: dict[str, list[Span]], placed: set[str]) -> Node:
    top = Node(root, 0)
    placed.add(root.id)
    found = [top]
    for node in found:
        for child in children[node.span.id]:
            if child.id not in placed:
                placed.add(child.id)
                below = Node(child, node.depth + 1)
                node.children.append(below)
                found.append(below)
    # Parents stand before their children in the list.
    for node in reversed(found):
        node.has_bad = any(child.has_bad or child.span.kind == "bad" for child in node.children)
    return top
