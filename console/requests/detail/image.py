"""Serves an image that a request or its answer carries. It fetches nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase

from analytics.conversation.images import decode_image
from analytics.conversation.requests import read_request
from analytics.conversation.responses import read_response
from analytics.conversation.turns import inline_images
from analytics.presenters.requests import find_request
from analytics.queries.requests import get_payload
from core.ui.pages import Page, Visit

# The image is untrusted content: opened by itself it may run and load nothing.
_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Content-Disposition": "inline",
    "Cache-Control": "private, max-age=3600",
}


class RequestImagePage(Page):
    name = "analytics_requests_image"
    route = "analytics/requests/<uuid:project_id>/<uuid:request_id>/images/<int:number>"
    title = "Image"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        return image_response(visit.project.pk, route["request_id"], route["number"])


def image_response(project_id: UUID, request_id: UUID, number: int) -> HttpResponseBase:
    """Returns image `number` of a request's bodies. Raises NotFoundError and Http404."""
    payload = get_payload(project_id, find_request(project_id, request_id))
    sides = (read_request(payload.request).turns, read_response(payload.response)) if payload else ()
    part = next(islice(inline_images(*sides), number, None), None)
    image = decode_image(part) if part else None
    if image is None:
        raise Http404("There is no such image.")
    return HttpResponse(image.data, content_type=image.media_type, headers=_HEADERS)
