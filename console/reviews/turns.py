"""The turns of the request of a review item, and of its answer."""

from __future__ import annotations

from typing import Any

from analytics.models.reviews import ReviewItem
from analytics.presenters.requests import find_request
from analytics.presenters.reviewed import reviewed_conversation
from analytics.reviews.due_labels import is_hidden
from core.ui.navigation import address_of
from core.ui.pages import Visit


def reviewed_turns(visit: Visit, item: ReviewItem) -> dict[str, Any]:
    """Returns the context of the panel: the last turns of the request, and the answer. While the request is hidden, it
    has no link to it. Raises NotFoundError and the errors of the store."""
    row = find_request(visit.project.pk, item.request_id)
    shown = reviewed_conversation(item, row) if visit.sees_content else None
    hidden = is_hidden(item)
    all_url = "" if hidden else visit.link("analytics_requests_detail", visit.project.pk, item.request_id)
    return {
        "row": row,
        "is_hidden": hidden,
        "has_payload": shown is not None and shown["turns"] is not None,
        "omitted": shown["omitted_turns"] if shown else 0,
        "turns": (shown["turns"] or []) if shown else [],
        "image_base": address_of("review", visit.project.pk, item.queue_id) + f"{item.pk}/images/",
        "all_url": all_url,
    }
