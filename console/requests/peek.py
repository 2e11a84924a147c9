from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from analytics.wire.conversations import TextBounds, request_conversation
from console.requests.detail.links import tiles
from console.requests.detail.record import Record
from core.errors import NotFoundError
from core.lookup.registry import as_uuid
from core.ui.pages import Visit
from core.ui.panels import Panel

PEEK = "peek"
"""The parameter of an address with the request that is shown beside the list."""

_DETAIL = "analytics_requests_detail"
_BOUNDS = (1_500, 20_000)


def peek_panels(visit: Visit) -> Sequence[Panel]:
    chosen = visit.request.GET.get(PEEK, "")
    return [Panel(PEEK, "The chosen request", "requests/peek.html", partial(_peek, visit, chosen))] if chosen else []


def _peek(visit: Visit, chosen: str) -> Mapping[str, Any]:
    request_id = as_uuid(chosen)
    if request_id is None:
        return {"is_gone": True}
    record = Record(visit.project.pk, request_id, sees_content=visit.sees_content)
    try:
        found = record.detail()
    except NotFoundError:
        return {"is_gone": True}
    conversation = request_conversation(record.payload, TextBounds(*_BOUNDS))
    return {
        "found": found,
        "tiles": tiles(found)[1:4],
        "attempts": found["attempt_timeline"],
        "conversation": conversation,
        "last_turn": conversation["turns"][-1:],
        "earlier_turns": conversation["turns"][:-1],
        **_addresses(visit, request_id, found["session_id"]),
    }


def _addresses(visit: Visit, request_id: UUID, session_id: str) -> Mapping[str, str]:
    whole = visit.link(_DETAIL, visit.project.pk, request_id)
    path, _, query = whole.partition("?")
    return {
        "whole": whole,
        "image_base": f"{path}images/",
        "all_url": f"{path}?{query}&all=1",
        "session": visit.link_if_there("session", visit.project.pk, session_id) if session_id else "",
    }
