"""The turns of the request of a review item, and of its answer."""

from __future__ import annotations

from itertools import count
from typing import Any

from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.models.reviews import ReviewItem
from analytics.presenters.requests import no_request
from analytics.queries.requests import get_payload, get_request
from analytics.wire.conversations import TextBounds, conversation_turns, skip_images
from core.ui.navigation import address_of
from core.ui.pages import Visit

_MAX_TURNS = 50
_BOUNDS = 20_000, 200_000


def reviewed_turns(visit: Visit, item: ReviewItem) -> dict[str, Any]:
    """Returns the context of the panel: the last turns of the request, and the answer. Raises NotFoundError and the
    errors of the store.

    Scores that the request has already are left out, so that they do not lead the reviewer.
    """
    row = get_request(visit.project.pk, item.request_id)
    if row is None:
        raise no_request()
    payload = get_payload(visit.project.pk, row) if visit.sees_content else None
    request_turns = read_request(payload.request if payload else "").turns
    answer_turns = read_response(payload.response if payload else "")
    omitted, images = max(len(request_turns) - _MAX_TURNS, 0), count()
    skip_images(request_turns[:omitted], images)
    # Each side has bounds of its own: a long request must not take the place of the answer, which is reviewed.
    turns = conversation_turns(request_turns[omitted:], TextBounds(*_BOUNDS), images)
    return {
        "row": row,
        "has_payload": payload is not None,
        "omitted": omitted,
        "turns": [*turns, *conversation_turns(answer_turns, TextBounds(*_BOUNDS), images)],
        "image_base": address_of("analytics_requests_detail", visit.project.pk, item.request_id) + "images/",
        "all_url": visit.link("analytics_requests_detail", visit.project.pk, item.request_id),
    }
