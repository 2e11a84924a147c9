from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils.safestring import SafeString

from core.ui.formats import duration
from core.ui.plots.labels import tick_label
from core.ui.plots.legend import colour
from core.ui.plots.markup import element, hidden, joined, linked, percent
from core.ui.plots.shapes import Span, Unit, Waterfall
from core.ui.plots.ticks import value_ticks

_BAR_HEIGHT = 14
_SMALLEST_BAR = 0.4
_MAX_INDENT = 8
_MILLISECOND = timedelta(milliseconds=1)
_EDGE = 92.0


@dataclass(slots=True)
class Node:
    span: Span
    depth: int
    children: list[Node] = field(default_factory=list)
    has_bad: bool = False
    """A span below this one is of kind "bad"."""


def span_tree(spans: Sequence[Span]) -> list[Node]:
    """Returns the roots by their start, each with its descendants.

    A span with a missing parent is a root, and so is the first span of a cycle.
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


@dataclass(frozen=True, slots=True)
class _Time:
    start: datetime
    end: datetime

    @property
    def milliseconds(self) -> float:
        return max((self.end - self.start) / _MILLISECOND, 0.001)

    def place(self, moment: datetime) -> float:
        return 100 * min(max((moment - self.start) / _MILLISECOND / self.milliseconds, 0.0), 1.0)


def render_waterfall(waterfall: Waterfall) -> SafeString:
    caption = element("figcaption", waterfall.title, class_="" if waterfall.caption else "sr")
    if not waterfall.spans:
        return element("figure", caption, element("p", waterfall.empty, class_="muted"), class_="plot")
    time = _time(waterfall.spans)
    rows = [_node(node, time, waterfall.open_depth) for node in span_tree(waterfall.spans)]
    return element("figure", caption, _head(time), *rows, class_="plot waterfall")


def _time(spans: Sequence[Span]) -> _Time:
    return _Time(min(span.start for span in spans), max(span.end or span.start for span in spans))


def _head(time: _Time) -> SafeString:
    ticks = [tick for tick in value_ticks(0.0, time.milliseconds, Unit.MILLISECONDS) if tick <= time.milliseconds]
    step = ticks[1] if len(ticks) > 1 else time.milliseconds
    labels = [_tick(100 * tick / time.milliseconds, tick_label(Unit.MILLISECONDS, tick, step)) for tick in ticks]
    scale = element("svg", *labels, width="100%", height=18, aria_hidden="true", focusable="false")
    cells = (element("span", "Span"), element("span", scale, class_="span-time"), element("span", "Duration"))
    return element("div", *cells, class_="span-row span-head")


def _tick(place: float, label: str) -> SafeString:
    anchor = "start" if place == 0 else "end" if place > _EDGE else "middle"
    return element("text", label, x=percent(place), y=13, text_anchor=anchor)


def _node(node: Node, time: _Time, open_depth: int) -> SafeString:
    if not node.children:
        return element("div", _row(node, time, _name(node.span)), class_="span-leaf")
    is_open = "open" if node.depth < open_depth - 1 or node.has_bad else None
    below = [_node(child, time, open_depth) for child in node.children]
    if not node.span.href:
        summary = element("summary", _row(node, time, _name(node.span)))
        return element("details", summary, *below, open=is_open, class_="span-node")
    # A link within a summary could not be reached by every reader, so it lies over the row that folds.
    link = element("span", _name_cell(_name(node.span)), class_=f"span-open {_depth(node)}")
    summary = element("summary", _row(node, time, hidden(node.span.name)))
    return element(
        "div", link, element("details", summary, *below, open=is_open, class_="span-node"), class_="span-parent"
    )


def _row(node: Node, time: _Time, name: SafeString) -> SafeString:
    span = node.span
    return element(
        "span",
        _name_cell(name),
        element("span", _bar(span, time), class_="span-time"),
        element("span", _length(span), class_="span-length"),
        class_=f"span-row {_depth(node)}",
    )


def _name_cell(name: SafeString) -> SafeString:
    return element("span", name, class_="span-name")


def _name(span: Span) -> SafeString:
    sign = element("strong", "\u00d7 ", hidden("failed "), class_="bad-text") if span.kind == "bad" else ""
    detail = element("small", " ", span.detail) if span.detail else ""
    return joined([sign, linked(span.name, span.href), detail])


def _depth(node: Node) -> str:
    return f"depth-{min(node.depth, _MAX_INDENT)}"


def _bar(span: Span, time: _Time) -> SafeString:
    begin = time.place(span.start)
    width = max(time.place(span.end or time.end) - begin, _SMALLEST_BAR)
    begin = min(begin, 100 - width)
    bar = element(
        "rect", x=percent(begin), y=1, width=percent(width), height=_BAR_HEIGHT - 2, rx=2, fill="currentColor"
    )
    return element(
        "svg",
        bar,
        width="100%",
        height=_BAR_HEIGHT,
        class_=colour(span.kind, 0),
        aria_hidden="true",
        focusable="false",
    )


def _length(span: Span) -> str:
    return "not ended" if span.end is None else duration((span.end - span.start) / _MILLISECOND)
