"""Serves an image of a review item; its address does not reveal the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase

from analytics.reviews.selectors import get_item, get_queue
from console.requests.detail.image import image_response
from core.ui.pages import Page, Visit


class ReviewImagePage(Page):
    name = "review_image"
    route = "reviews/<uuid:project_id>/<uuid:queue_id>/<uuid:item_id>/images/<int:number>"
    title = "Image"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        item = get_item(get_queue(visit.project.pk, route["queue_id"]), route["item_id"])
        return image_response(visit.project.pk, item.request_id, route["number"])
