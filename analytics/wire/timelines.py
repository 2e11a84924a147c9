from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypedDict, TypeVar
from uuid import UUID

from analytics.queries.requests import RequestRow
from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.rows import SpanRow
from analytics.wire.attempts import AttemptEntry, attempt_entries
from analytics.wire.telemetry import LogRecord, span_entry
from core.wire.shown import shown_as

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_MS = 1_000_000
_FAILED = frozenset({"error", "interrupted"})


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Placed(Generic[Key]):
    index: int
    depth: int
    parent: Key | None


def in_tree_order(nodes: Sequence[tuple[Key, Key | None, int]]) -> list[Placed[Key]]:
    """The places of nodes, given as (key, key of the parent, start), depth first and by start.

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


class TimelineNode(TypedDict):
    """A span, a request or an attempt of one. `parent_id` is null for a root, and where the parent is not in the list.
    `offset_ms` counts from the start of the timeline. `request_id` is that of the gateway's request that the node
    stands for or belongs to."""

    id: str
    parent_id: str | None
    depth: int
    kind: str
    name: str
    service_name: str
    trace_id: str | None
    started_at: datetime
    offset_ms: float
    duration_ms: float
    status: str
    status_message: str | None
    request_id: UUID | None
    provider: str | None
    model: str | None
    total_tokens: int | None
    cost_usd: float | None
    attributes: dict[str, str] | None


class Timeline(TypedDict):
    """`truncated` says that there are more spans or requests than are shown."""

    started_at: datetime | None
    duration_ms: float
    truncated: bool
    nodes: list[TimelineNode]


class SessionTimeline(Timeline):
    """`next_offset` leads to the session's further requests, null at the end."""

    next_offset: int | None


class Trace(Timeline):
    """A trace with its first logs, and the sessions that its spans, logs and requests name, the first named first."""

    trace_id: str
    sessions: list[str]
    logs: list[LogRecord]


@dataclass(slots=True)
class _Node:
    id: str
    parent: str | None
    kind: str
    name: str
    start_ns: int
    duration_ns: int
    status: str
    service_name: str = ""
    trace_id: str | None = None
    status_message: str | None = None
    request: RequestRow | None = None
    request_id: UUID | None = None
    provider: str = ""
    model: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def session_timeline(spans: Sequence[SpanRow], requests: Sequence[RequestRow], *, truncated: bool) -> Timeline:
    """The gateway's spans stand for their requests. A request without spans, which are kept for a shorter time and can
    be switched off, is a node of its own with its attempts below it."""
    by_id = {str(row.request_id): row for row in requests}
    nodes = [_span_node(row, by_id) for row in spans]
    with_span = {node.request.request_id for node in nodes if node.kind == "request" and node.request}
    for row in requests:
        if row.request_id not in with_span:
            nodes += _request_nodes(row)
    start = min((node.start_ns for node in nodes), default=0)
    end = max((node.start_ns + node.duration_ns for node in nodes), default=0)
    places = in_tree_order([(node.id, node.parent, node.start_ns) for node in nodes])
    return {
        "started_at": _moment(start) if nodes else None,
        "duration_ms": (end - start) / _NS_PER_MS,
        "truncated": truncated,
        "nodes": [_entry(nodes[place.index], place.parent, place.depth, start) for place in places],
    }


def _span_node(row: SpanRow, requests: dict[str, RequestRow]) -> _Node:
    span = span_entry(row)
    attributes = span["attributes"] or {}
    request_id = _uuid(attributes.get(REQUEST_ID, ""))
    request = requests.get(str(request_id)) if request_id else None
    is_request = request_id is not None and span["span_kind"] == "Server"
    failed = span["status_code"] == "Error" or (is_request and request is not None and request.outcome in _FAILED)
    return _Node(
        id=_span_key(span["trace_id"], span["span_id"]),
        parent=_span_key(span["trace_id"], span["parent_span_id"]) if span["parent_span_id"] else None,
        kind="request" if is_request else "attempt" if request_id else "span",
        name=span["span_name"],
        start_ns=_nanoseconds(row.time),
        duration_ns=row.duration_ns,
        status="error" if failed else "ok" if request or span["status_code"] == "Ok" else "unset",
        service_name=span["service_name"],
        trace_id=span["trace_id"] or None,
        status_message=span["status_message"] or (request.error_message if request and is_request else "") or None,
        request=request if is_request else None,
        request_id=request_id,
        provider=attributes.get("gen_ai.provider.name", "") or (request.provider if request and is_request else ""),
        model=attributes.get("gen_ai.request.model", "") or (request.model if request and is_request else ""),
        attributes=attributes,
    )


def _request_nodes(row: RequestRow) -> list[_Node]:
    key, start = f"request:{row.request_id}", (row.ts - _EPOCH) // (_MICROSECOND) * 1000
    node = _Node(
        id=key,
        parent=None,
        kind="request",
        name=f"{row.operation} {row.model or row.requested_model}".strip(),
        start_ns=start,
        duration_ns=row.latency_ms * _NS_PER_MS,
        status="error" if row.outcome in _FAILED else "ok",
        status_message=row.error_message or None,
        request=row,
        request_id=row.request_id,
        provider=row.provider,
        model=row.model,
    )
    return [node, *(_attempt_node(row, key, start, attempt) for attempt in attempt_entries(row))]


def _attempt_node(row: RequestRow, parent: str, start: int, attempt: AttemptEntry) -> _Node:
    return _Node(
        id=f"{parent}:{attempt['number']}",
        parent=parent,
        kind="attempt",
        name=f"{attempt['provider']} {attempt['model']}".strip(),
        start_ns=start + int(attempt["started_ms"] * _NS_PER_MS),
        duration_ns=max(int((attempt["ended_ms"] - attempt["started_ms"]) * _NS_PER_MS), 0),
        status="error" if attempt["error"] else "ok",
        status_message=attempt["error"],
        request_id=row.request_id,
        provider=attempt["provider"],
        model=attempt["model"],
    )


def _entry(node: _Node, parent: str | None, depth: int, start: int) -> TimelineNode:
    request = node.request
    return shown_as(
        TimelineNode,
        node,
        parent_id=parent,
        depth=depth,
        started_at=_moment(node.start_ns),
        offset_ms=(node.start_ns - start) / _NS_PER_MS,
        duration_ms=node.duration_ns / _NS_PER_MS,
        status_message=node.status_message,
        provider=node.provider or None,
        model=node.model or None,
        total_tokens=request.prompt_tokens + request.completion_tokens if request else None,
        cost_usd=float(request.cost_usd) if request and request.cost_known else None,
    )


_MICROSECOND = datetime.resolution


def _nanoseconds(time: str) -> int:
    seconds, _, fraction = time.partition(".")
    whole = (datetime.fromisoformat(seconds).replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
    return whole * 1000 + int((fraction + "0" * 9)[:9])


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + nanoseconds // 1000 * _MICROSECOND


def _span_key(trace_id: str, span_id: str) -> str:
    return f"{trace_id}:{span_id}"


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
