from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from analytics.presenters.requests import request_page
from analytics.presenters.timelines import timeline
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_sorting import RequestSort
from analytics.request_log.record import RequestEntry
from analytics.wire.texts import lists_without_texts
from analytics.wire.timelines import TimelineNode
from core.ui.formats import money, number
from core.ui.pages import Visit
from core.ui.plots import Span, Waterfall
from core.ui.tables import page_link

# With more the page would be larger than 150 KB.
_MAX_SPANS, _ALL_SPANS = 120, 5_000
_MAX_ATTRIBUTES = 60
_SPAN, _FROM = "span", "from"
_MAX_OFFSET_DIGITS = 6
_SLOWEST = 10


def timeline_context(visit: Visit, session_id: str) -> Mapping[str, Any]:
    """Returns the waterfall, and the details of the node that the address names, else of a failed one."""
    query = visit.request.GET
    offset = page_offset(query.get(_FROM, ""))
    found = timeline(visit.project.pk, session_id, offset)
    if not visit.sees_content:
        found = lists_without_texts(found)  # type: ignore[assignment]  # the same fields, some null
    nodes, onward = found["nodes"], found["next_offset"]
    most = _ALL_SPANS if "spans" in query else _MAX_SPANS
    spans = [_span(node, page_link(query, span=node["id"]) + "#panel-timeline") for node in nodes[:most]]
    node = _chosen(nodes, query.get(_SPAN, ""))
    return {
        "waterfall": Waterfall("Spans and requests", spans, caption=False),
        "count": len(nodes),
        "failed": sum(node["status"] == "error" for node in nodes),
        "shown": len(spans),
        "all_url": page_link(query, spans="all") + "#panel-timeline",
        "truncated": found["truncated"],
        "next_url": page_link(query, **{_FROM: str(onward)}, span="") + "#panel-timeline" if onward else "",
        "first_url": page_link(query, **{_FROM: ""}, span="") + "#panel-timeline" if offset else "",
        "slowest": [_slowest(visit, row) for row in _slowest_requests(visit, session_id)],
        "duration_ms": found["duration_ms"],
        "node": node,
        "attributes": sorted((node["attributes"] or {}).items())[:_MAX_ATTRIBUTES] if node else [],
        "request_url": _request_url(visit, node),
    }


def page_offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_OFFSET_DIGITS else 0


def _slowest_requests(visit: Visit, session_id: str) -> Sequence[RequestEntry]:
    filters = RequestFilter(session_id=session_id)
    found: Sequence[Any] = request_page(visit.project.pk, filters, RequestSort.SLOWEST, _SLOWEST).results
    return found


def _slowest(visit: Visit, row: RequestEntry) -> tuple[str, RequestEntry]:
    return visit.link("analytics_requests_detail", visit.project.pk, row["request_id"]), row


def _span(node: TimelineNode, href: str) -> Span:
    start = node["started_at"]
    return Span(
        id=node["id"],
        parent_id=node["parent_id"],
        name=_name(node),
        start=start,
        end=start + timedelta(milliseconds=node["duration_ms"]),
        kind="bad" if node["status"] == "error" else "",
        href=href,
        detail=", ".join(_details(node)),
    )


def _name(node: TimelineNode) -> str:
    # The gateway names the span of a request by its route, which is nearly always the same.
    is_request = node["kind"] == "request" and node["model"]
    return f"request to {node['model']}" if is_request else node["name"] or node["kind"]


def _details(node: TimelineNode) -> list[str]:
    tokens, cost = node["total_tokens"], node["cost_usd"]
    return [
        *([node["model"]] if node["model"] and node["model"] not in _name(node) else []),
        *([f"{number(tokens)} tokens"] if tokens else []),
        *([money(cost)] if cost is not None else []),
    ]


def _chosen(nodes: Sequence[TimelineNode], span: str) -> TimelineNode | None:
    named = next((node for node in nodes if node["id"] == span), None)
    failed = next((node for node in nodes if node["status"] == "error"), None)
    return named or failed or (nodes[0] if nodes else None)


def _request_url(visit: Visit, node: TimelineNode | None) -> str:
    if node is None or node["request_id"] is None:
        return ""
    return visit.link("analytics_requests_detail", visit.project.pk, node["request_id"])
