"""The address of an image of a review item, which does not name the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase

from analytics.reviews.errors import ItemNotFoundError, QueueNotFoundError
from analytics.reviews.selectors import get_item, get_queue
from console.requests.detail.image import image_response
from core.ui.pages import Page, Visit
from core.ui.registry import register_page


@register_page
class ReviewImagePage(Page):
    name = "review_image"
    route = "reviews/<uuid:project_id>/<uuid:queue_id>/<uuid:item_id>/images/<int:number>"
    title = "Image"
    template = "ui/page.html"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        try:
            item = get_item(get_queue(visit.project.pk, route["queue_id"]), route["item_id"])
        except (QueueNotFoundError, ItemNotFoundError) as error:
            raise Http404(error.message) from error
        return image_response(visit.project.pk, item.request_id, route["number"])
