"""The endpoints of the request log."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.presenters import requests, timelines
from analytics.request_parameters import RequestParameters
from analytics.views.deletion import RequestDeletion
from analytics.wire.neighbours import RequestNeighbours
from analytics.wire.requests import RequestDetail, RequestEntry
from analytics.wire.texts import request_without_texts
from core.openapi import PAGE, operation
from core.pagination import listing_response, parse_page
from core.views import ProjectAPIView


class RequestsView(ProjectAPIView):
    @operation("listRequests", "The request log", query=[PAGE, RequestParameters], page=RequestEntry)
    def get(self, request: Request) -> Response:
        """The list has the newest first. Previews and the error's message are null for a reader without content."""
        page = parse_page(request)
        filters = RequestParameters(data=request.query_params.dict()).to_filter()
        listing = requests.requests(self.project_id, filters, page)
        return listing_response(
            request, page, listing if self.sees_content else listing.shown_as(request_without_texts)
        )


class RequestView(RequestDeletion):
    @operation("getRequest", "One request, with its bodies and scores", answer=RequestDetail, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        """Previews, bodies, attributes, the error's message and the reasons of scores are null for a reader without
        content."""
        found = requests.request(self.project_id, request_id)
        return Response(found if self.sees_content else request_without_texts(found))


class RequestNeighboursView(ProjectAPIView):
    @operation("requestNeighbours", "The requests before and after one", answer=RequestNeighbours, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        """The two are of the same session; of the whole log for a request without a session."""
        return Response(timelines.neighbours(self.project_id, request_id))
